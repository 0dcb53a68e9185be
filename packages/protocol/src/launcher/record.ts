import { readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { errnoOf, Fault } from "@warren/base/fault.ts"
import { z } from "zod"
import { UserName } from "../control/account.ts"
import { recordsOf, type Machine } from "./machine.ts"

/** What root has written down of a user. Nothing is ever started for anybody who has none. */
export const UserRecord = z.object({
  name: UserName,
  /** 0 while the account is not made. Root is never a user. */
  uid: z.int().min(0),
  gid: z.int().min(0),
  /** The home of the account. */
  home: z.string().regex(/^\/[\w./-]+$/),
  /** `making`: written before anything is made, so that what a killed `user create` leaves can be found and taken away. */
  state: z.enum(["making", "active", "disabled"]),
  createdAt: z.iso.datetime(),
})
export type UserRecord = z.output<typeof UserRecord>

export const recordFileOf = (machine: Machine, name: string): string => join(recordsOf(machine), `${name}.json`)

/** The runner's WARREN_HOME: where the user's own `warren` looks, too. */
export const dataFolderOf = (record: UserRecord): string => join(record.home, ".local", "share", "warren")

export function readRecord(machine: Machine, name: string): UserRecord | undefined {
  const file = recordFileOf(machine, UserName.parse(name))
  try {
    refuseForeign(file)
    const record = UserRecord.parse(JSON.parse(readFileSync(file, "utf8")))
    if (record.name === name) return record
  } catch (cause) {
    if (errnoOf(cause) === "ENOENT") return undefined
    if (cause instanceof Fault) throw cause
    throw new Fault("internal", `the record of the user "${name}" cannot be read`, { cause, hint: `see ${file}` })
  }
  throw new Fault("internal", `the record of the user "${name}" is of somebody else`, { hint: `see ${file}` })
}

export function readRecords(machine: Machine): UserRecord[] {
  const files = namesIn(recordsOf(machine)).filter((name) => /^[a-z_][a-z0-9_-]*\.json$/.test(name))
  return files.toSorted().flatMap((file) => readRecord(machine, file.slice(0, -".json".length)) ?? [])
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch (failure) {
    if (errnoOf(failure) === "ENOENT") return []
    throw failure
  }
}

/** Whoever can write a record can have a runner started as anybody. */
function refuseForeign(file: string): void {
  const { uid, mode } = statSync(file)
  if (uid === 0 && (mode & 0o022) === 0) return
  throw new Fault("forbidden", `others than root can write ${file}`, { hint: "it is not gone by" })
}
