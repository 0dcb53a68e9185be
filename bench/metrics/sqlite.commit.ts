import { join } from "node:path"
import { Database } from "@warren/base/sqlite/database.ts"
import Sqlite from "libsql"
import { defineMetric, elapsedMs } from "../metric.ts"

const table = "CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT NOT NULL, at INTEGER NOT NULL) STRICT"
const insert = "INSERT INTO notes (body, at) VALUES (?, ?)"
const row = ["a small thing that happened and must not be forgotten", 1_700_000_000_000]

/** One small row, on the disk when it returns, through our Database and through what is under it. */
export const metric = defineMetric({
  name: "sqlite.commit",
  unit: "us",
  samples: { full: 4_000, quick: 400 },
  perTurn: 20,
  prepare(context) {
    const ours = context.scope.use(
      new Database(join(context.folder, "ours.db"), { migrations: [{ name: "notes", sql: table }] }),
    )
    const bare = new Sqlite(join(context.folder, "bare.db"))
    context.scope.defer(() => {
      bare.close()
    })
    for (const pragma of ["journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "trusted_schema = OFF"]) {
      bare.exec(`PRAGMA ${pragma}`)
    }
    bare.exec(table)
    return Promise.resolve({ ours, statement: bare.prepare(insert) })
  },
  run: async ({ ours }) => (await elapsedMs(() => ours.run(insert, row))) * 1_000,
  baseline: {
    name: "bare libsql, same pragmas",
    run: async ({ statement }) => (await elapsedMs(() => statement.run(row))) * 1_000,
  },
})
