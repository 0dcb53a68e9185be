import { z } from "zod"
import { Tunnel, TunnelName } from "@warren/protocol/user-plane/tunnels.ts"
import { facts, given, sessionField, tool, type Bench } from "../tool.ts"

const expose = tool({
  name: "expose_port",
  title: "Expose a port",
  doc: "Give a port inside a session an address: what listens there can then be opened in a browser, by its owner unless said otherwise.",
  kind: "makes",
  in: z.object({
    session: sessionField,
    port: z.int().min(1).max(65_535),
    name: TunnelName.optional().meta({ description: "Part of its address; made of the port unless given." }),
    visibility: Tunnel.shape.visibility.default("private"),
    protocol: Tunnel.shape.protocol.default("auto"),
  }),
  async run({ name, ...input }, { asking, urlOf }) {
    const { tunnel, token } = await asking.call("tunnel.create", { ...input, name: name ?? `port-${input.port}` })
    return facts({ tunnel: shown(tunnel, urlOf), ...given({ token }) })
  },
})

const list = tool({
  name: "list_ports",
  title: "List exposed ports",
  doc: "The ports of a session that have an address.",
  kind: "reads",
  in: z.object({ session: sessionField }),
  async run({ session }, { asking, urlOf }) {
    const { items } = await asking.call("tunnel.list", { session, limit: 200 })
    return facts({ tunnels: items.map((tunnel) => shown(tunnel, urlOf)) })
  },
})

const close = tool({
  name: "close_port",
  title: "Close an exposed port",
  doc: "Take the address of a port away; what goes through it is cut.",
  kind: "changes",
  in: z.object({ session: sessionField, name: TunnelName }),
  async run(input, { asking }) {
    return facts(await asking.call("tunnel.delete", input))
  },
})

function shown(tunnel: Tunnel, urlOf: Bench["urlOf"]): Record<string, unknown> {
  const { name, port, visibility, protocol, path } = tunnel
  return { name, port, visibility, protocol, ...given({ url: urlOf(path) }), path }
}

export const portTools = [expose, list, close]
