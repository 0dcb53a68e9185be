import { z } from "zod"
import { contract } from "../contract.ts"

export const AccessEntry = z
  .object({
    time: z.iso.datetime(),
    user: z.string().meta({ description: "Whom the control plane said it asked for; empty when it could not say." }),
    call: z.string(),
    session: z.string().optional(),
    token: z.string().optional().meta({ description: "The token or sign-in that was used." }),
    statement: z.string().optional().meta({ description: "The id of the signed statement." }),
    trace: z.string().optional().meta({ description: "The trace this was a part of, where there is one." }),
    result: z.string().meta({ description: "`ok`, `opened` for what goes on, or the code of a fault." }),
    reason: z.string().optional().meta({ description: "Why it was refused." }),
  })
  .meta({
    id: "AccessEntry",
    description: "One thing the control plane asked of this runner.",
    examples: [
      {
        time: "2026-01-02T03:04:05.678Z",
        user: "alice",
        call: "session.get",
        session: "ses_0123456789abcdefghjk",
        token: "tok_0123456789abcdefghjk",
        statement: "stm_0123456789abcdefghjk",
        result: "ok",
      },
    ],
  })
export type AccessEntry = z.output<typeof AccessEntry>

export const accessCalls = contract({
  "access.read": {
    since: 1,
    scope: "access:read",
    http: "GET /v1/access",
    doc: "What the control plane has asked of your runner, the newest last. It cannot change this log.",
    in: z.object({ limit: z.coerce.number().int().min(1).max(1_000).default(100) }),
    out: z.object({ entries: z.array(AccessEntry) }),
  },
})
