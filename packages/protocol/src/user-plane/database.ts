import { z } from "zod"
import { contract } from "../contract.ts"

export const sqlCharsMax = 64 * 1024
const parametersMax = 999
const rowsMax = 5_000
const timeoutMsMax = 30_000

/** What JSON has no form for has one here: bytes, and whole numbers beyond 2^53. */
export const SqlValue = z
  .union([
    z.string(),
    z.number(),
    z.null(),
    z.object({ base64: z.base64() }),
    z.object({ integer: z.string().regex(/^-?\d{1,19}$/) }),
  ])
  .meta({
    id: "SqlValue",
    description: "A value of the database.",
    examples: ["text", 42, null, { base64: "AAE=" }, { integer: "9223372036854775807" }],
  })

const Parameter = z.union([SqlValue, z.boolean()])

const Asked = z.object({
  sql: z
    .string()
    .min(1)
    .max(sqlCharsMax)
    .meta({ description: "One statement.", examples: ["SELECT * FROM notes WHERE id = ?"] }),
  parameters: z.array(Parameter).max(parametersMax).default([]).meta({ description: "For each `?`, in order." }),
  timeoutMs: z.int().min(1).max(timeoutMsMax).default(5_000),
  rowsMax: z.int().min(1).max(rowsMax).default(500),
})

export const SqlResult = z
  .object({
    columns: z.array(z.string()),
    rows: z.array(z.array(SqlValue)),
    changes: z.int().meta({ description: "Rows that were changed." }),
    isTruncated: z.boolean().meta({ description: "There were more rows, or more bytes, than one answer holds." }),
  })
  .meta({ id: "SqlResult", description: "What a statement gave." })

export const databaseCalls = contract({
  "db.query": {
    since: 1,
    scope: "database:read",
    http: "POST /v1/db/query",
    doc: "Read from the user's own database. Nothing can be changed by it.",
    in: Asked,
    out: SqlResult,
    timeoutMs: 40_000,
  },
  "db.execute": {
    since: 1,
    scope: "database:write",
    http: "POST /v1/db/execute",
    doc: "Change the user's own database: one statement, in a transaction of its own.",
    in: Asked,
    out: SqlResult,
    timeoutMs: 40_000,
  },
})
