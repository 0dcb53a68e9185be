import { z } from "zod"
import { contract } from "../contract.ts"

export const gatewayCalls = contract({
  "gateway.token": {
    since: 1,
    scope: "ports",
    http: "POST /v1/sessions/{id}/gateway-token",
    doc: "A token that opens one session at your gateway, for minutes.",
    in: z.object({
      id: z.string().min(1).max(128).meta({ description: "The session's id or name." }),
      lifeS: z
        .int()
        .min(1)
        .max(15 * 60)
        .default(10 * 60),
      port: z.int().min(1).max(65_535).optional().meta({
        description: "Only this port of it. Without, and with the scope exec: also its terminal, editor and desktop.",
      }),
    }),
    out: z.object({
      token: z.string(),
      session: z.string(),
      expiresAt: z.iso.datetime(),
      domain: z.string().meta({
        description:
          "Previews are at `<port or name>-<session without ses_>.<domain>`; empty where there are no such names.",
        examples: ["warren.localhost"],
      }),
    }),
  },
})
