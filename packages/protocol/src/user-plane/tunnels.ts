import { z } from "zod"
import { contract } from "../contract.ts"
import { page, pageInput } from "./page.ts"

export const TunnelName = z
  .string()
  .regex(/^[a-z](?:[a-z0-9-]{0,30}[a-z0-9])?$/, "lower-case letters, digits and dashes, a letter first, at most 32")
  .meta({ id: "TunnelName", description: "Part of its path and of its host name.", examples: ["web"] })

const Port = z.int().min(1).max(65_535)

export const Tunnel = z
  .object({
    id: z.string().meta({ examples: ["tun_0123456789abcdefghjk"] }),
    session: z.string().meta({ examples: ["ses_0123456789abcdefghjk"] }),
    name: TunnelName,
    port: Port,
    protocol: z.enum(["http", "ws", "auto"]).meta({ description: "Plain requests, WebSockets, or both." }),
    visibility: z.enum(["private", "link", "public"]).meta({
      description: "For its owner; for whoever has its link too; for everybody who can reach the gateway.",
    }),
    path: z
      .string()
      .meta({ description: "Where it is at the gateway.", examples: ["/s/ses_0123456789abcdefghjk/t/web/"] }),
    label: z.string().meta({
      description: "The first part of its own host name, before the gateway's domain.",
      examples: ["web-0123456789abcdefghjk"],
    }),
    createdAt: z.iso.datetime(),
  })
  .meta({ id: "Tunnel", description: "A name for a port inside a session, and who may reach it." })
export type Tunnel = z.output<typeof Tunnel>

export const TunnelEvent = z
  .object({
    event: z.enum(["created", "deleted"]),
    tunnel: Tunnel,
  })
  .meta({ id: "TunnelEvent" })
export type TunnelEvent = z.output<typeof TunnelEvent>

/** What a new one is asked to be. */
export const tunnelWishes = {
  name: TunnelName,
  port: Port,
  protocol: Tunnel.shape.protocol.default("auto"),
  visibility: Tunnel.shape.visibility.default("private"),
}

const session = z.string().min(1).max(128).meta({ description: "The session's id or name." })

export const tunnelCalls = contract({
  "tunnel.create": {
    since: 1,
    scope: "ports",
    http: "POST /v1/sessions/{session}/tunnels",
    doc: "Give a port inside a session a name, and say who may reach it.",
    in: z.object({ session, ...tunnelWishes }),
    out: z.object({
      tunnel: Tunnel,
      token: z.string().optional().meta({ description: "Of a link: told once. Deleting the tunnel revokes it." }),
    }),
  },
  "tunnel.list": {
    since: 1,
    scope: "ports",
    http: "GET /v1/tunnels",
    doc: "List tunnels, the oldest first.",
    in: z.object({ session: session.optional(), ...pageInput }),
    out: page(Tunnel),
  },
  "tunnel.follow": {
    since: 1,
    scope: "ports",
    http: "GET /v1/tunnels/follow",
    doc: "Every tunnel made or deleted after number `after`, then every one that follows.",
    in: z.object({ session: session.optional(), after: z.coerce.number().int().min(0).default(0) }),
    each: TunnelEvent,
  },
  "tunnel.delete": {
    since: 1,
    scope: "ports",
    http: "DELETE /v1/sessions/{session}/tunnels/{name}",
    doc: "Take a tunnel away. What goes through it is cut, and its link is worth nothing.",
    in: z.object({ session, name: TunnelName }),
    out: z.object({ isDeleted: z.boolean() }),
  },
})
