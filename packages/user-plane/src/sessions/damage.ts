import { Fault } from "@warren/base/fault.ts"
import type { Database } from "@warren/base/sqlite/database.ts"

/**
 * Says no to a database that is damaged, before anything is done because of what it says: sandboxes and snapshots it does not know of are
 * taken away. Reads all of it, at some hundred megabytes a second.
 */
export function refuseDamage(database: Database): void {
  const words = database.get("PRAGMA quick_check(1)", [], (row) => String(Object.values(row)[0]))
  if (words === "ok") return
  throw new Fault("unavailable", `the database is damaged: ${words ?? "nothing can be read"}`, {
    hint: "restore it from a backup; nothing was touched",
    subject: `database:${database.path}`,
  })
}
