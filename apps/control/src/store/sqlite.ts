import { Fault } from "@warren/base/fault.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import { migrations } from "./schema.ts"
import type { Sql, SqlRow, SqlValue, Write } from "./sql.ts"

const isNote =
  /^(?:INSERT INTO|UPDATE|DELETE FROM) made |^INSERT INTO (?:audit|session_owners) |^UPDATE \w+ SET used_at /

/** While it waits for a lock of somebody who should not be there, nobody else is answered. */
const busyMs = 500

/** The control plane's tables in a file of its own: the default. Nobody else writes to it. */
export function openSqlite(path: string): Sql {
  const database = new Database(path, { migrations, busyMs })
  let version = 0
  const one = ({ sql, values, rows }: Write): number => {
    const changed = database.run(sql, values)
    if (rows !== undefined && rows !== changed) throw new Fault("conflict", "somebody else was faster")
    return changed
  }
  return {
    all: async (sql: string, values: readonly SqlValue[]) => database.all(sql, values, (row) => row as SqlRow),
    get version() {
      return version
    },
    async write(...writes) {
      // Reading and writing are synchronous here: nobody finds the old after this.
      if (!writes.every(({ sql }) => isNote.test(sql))) version++
      return database.transaction(() => writes.map(one))
    },
    [Symbol.asyncDispose]: async () => database.close(),
  }
}
