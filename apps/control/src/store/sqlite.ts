import { Fault } from "@warren/base/fault.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import { migrations } from "./schema.ts"
import type { Sql, SqlRow, SqlValue, Write } from "./sql.ts"

/** The control plane's tables in a file of its own: the default. */
export function openSqlite(path: string): Sql {
  const database = new Database(path, { migrations })
  const one = ({ sql, values, rows }: Write): number => {
    const changed = database.run(sql, values)
    if (rows !== undefined && rows !== changed) throw new Fault("conflict", "somebody else was faster")
    return changed
  }
  return {
    all: async (sql: string, values: readonly SqlValue[]) => database.all(sql, values, (row) => row as SqlRow),
    write: async (...writes) => database.transaction(() => writes.map(one)),
    [Symbol.asyncDispose]: async () => database.close(),
  }
}
