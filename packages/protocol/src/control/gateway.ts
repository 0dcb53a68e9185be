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
    }),
    out: z.object({ token: z.string(), session: z.string(), expiresAt: z.iso.datetime() }),
  },
})
