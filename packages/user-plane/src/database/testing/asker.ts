import { writeSync } from "node:fs"
import { UserDatabase } from "../user-database.ts"

/** A process to be killed while its database process is busy and deaf. */
const [, , path = "", program = ""] = process.argv
const database = new UserDatabase({ path, program })
const asked = { parameters: [], timeoutMs: 30_000, rowsMax: 1 }
const { signal } = new AbortController()
await database.ask("query", { ...asked, sql: "SELECT 1" }, signal)
const forever = "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c"
const busy = database.ask("query", { ...asked, sql: forever }, signal)
writeSync(1, "busy\n")
await busy
