import { writeSync } from "node:fs"
import { systemClock } from "@warren/base/clock.ts"
import { silentLog } from "@warren/base/log.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import { Vault, vaultMigrations } from "../vault.ts"

/** A process to be killed: changes the vault's key for ever, and says a line for each time. */
const [, , path = "", keyFile = ""] = process.argv
const database = new Database(path, { migrations: vaultMigrations })
const vault = await Vault.open({ database, clock: systemClock, log: silentLog, keyFile })
for (;;) {
  await vault.rotate()
  writeSync(1, "rotated\n")
}
