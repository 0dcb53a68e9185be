import { z } from "zod"
import { contract } from "../contract.ts"

export const AuditEntry = z
  .object({
    seq: z.int(),
    time: z.iso.datetime(),
    user: z.string().meta({ description: "The user's id; empty when nobody said who they were." }),
    via: z.string().meta({ description: "The token or sign-in that was used." }),
    action: z.string().meta({ examples: ["session.create"] }),
    subject: z.string().meta({ description: "What it was done to, by its id." }),
    address: z.string(),
    request: z.string(),
    result: z.string().meta({ description: "`ok`, or the code of a fault." }),
    hash: z.string().meta({ description: "Of this entry and the hash before it." }),
  })
  .meta({ id: "AuditEntry", description: "One thing that somebody did or tried." })
export type AuditEntry = z.output<typeof AuditEntry>

export const AuditCheckpoint = z
  .object({ seq: z.int(), hash: z.string(), time: z.iso.datetime(), signature: z.string() })
  .meta({ id: "AuditCheckpoint", description: "Where the log begins now; signed, because what was before it is gone." })

export const auditCalls = contract({
  "audit.list": {
    since: 1,
    scope: "admin",
    http: "GET /v1/audit",
    doc: "What users did and tried, in order. `GET /v1/audit/export` gives all of it as JSON lines.",
    in: z.object({
      after: z.coerce.number().int().min(0).default(0),
      before: z.coerce
        .number()
        .int()
        .min(1)
        .optional()
        .meta({ description: "The last ones before this number, instead of the first ones; still in order." }),
      limit: z.coerce.number().int().min(1).max(1_000).default(100),
    }),
    out: z.object({ items: z.array(AuditEntry), checkpoint: AuditCheckpoint.optional() }),
  },
  "audit.verify": {
    since: 1,
    scope: "admin",
    http: "GET /v1/audit/verify",
    doc: "Check that nothing in the log was changed, removed or put in.",
    in: z.object({}),
    out: z.object({
      isWhole: z.boolean(),
      entries: z.int(),
      problem: z.string().optional().meta({ description: "The first thing that is wrong." }),
    }),
    timeoutMs: 300_000,
  },
  "audit.truncate": {
    since: 1,
    scope: "admin",
    http: "POST /v1/audit/truncate",
    doc: "Forget entries up to and including this number; a signed checkpoint takes their place.",
    in: z.object({ seq: z.int().min(1) }),
    out: z.object({ checkpoint: AuditCheckpoint }),
  },
})
