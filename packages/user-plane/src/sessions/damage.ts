import { Fault } from "@warren/base/fault.ts"
import type { Database } from "@warren/base/sqlite/database.ts"

/** Sandboxes and snapshots that these tables do not know of are taken away. */
const tables = ["sessions", "sandboxes", "snapshots"]

/** Says no to a database that is damaged where it matters most, before anything is done because of what it says. */
export function refuseDamage(database: Database): void {
  for (const table of tables) {
    const words = database.get(`PRAGMA quick_check(${table})`, [], (row) => String(Object.values(row)[0]))
    if (words === "ok") continue
    throw new Fault("unavailable", `the database is damaged: ${words ?? "nothing can be read"}`, {
      hint: "restore it from a backup; nothing was touched",
      subject: `database:${database.path}`,
    })
  }
}
