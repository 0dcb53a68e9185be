import { writeSync } from "node:fs"
import { systemClock } from "@warren/base/clock.ts"
import { silentLog } from "@warren/base/log.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import { plainDisk } from "../disk.ts"
import { workspaceMigrations } from "../schema.ts"
import { Workspaces } from "../workspaces.ts"

/** A process to be killed: makes and fills workspaces and deletes every other one, and says a line for each thing that has happened. */
const [, , path = "", folder = ""] = process.argv
const database = new Database(path, { migrations: workspaceMigrations })
const workspaces = await Workspaces.open({ database, clock: systemClock, log: silentLog, disk: plainDisk(folder) })
const say = (line: string): void => void writeSync(1, `${line}\n`)
async function* pieces(): AsyncGenerator<Uint8Array, void, void> {
  yield Buffer.from("all ")
  yield Buffer.from("of it")
}
for (let n = 0; ; n++) {
  const name = `w${n}`
  await workspaces.create(name, 0)
  say(`created ${name}`)
  await workspaces.files(name).write("file", pieces())
  say(`wrote ${name}`)
  if (n % 2 === 1) continue
  await workspaces.delete(name)
  say(`deleted ${name}`)
}
