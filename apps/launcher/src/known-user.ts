import { Fault } from "@warren/base/fault.ts"
import type { Machine } from "@warren/protocol/launcher/machine.ts"
import { passwdEntryOf } from "@warren/protocol/launcher/passwd.ts"
import { readRecord, type UserRecord } from "@warren/protocol/launcher/record.ts"
import type { Identity } from "./identity.ts"

/** A user root has made, if this machine still says the same of them. There is nobody to fall back to. */
export function knownUser(machine: Machine, name: string): UserRecord & Identity {
  const record = readRecord(machine, name)
  if (!record) throw new Fault("not_found", `there is no user "${name}"`, { hint: `warren user create ${name}` })
  if (record.state === "disabled") {
    throw new Fault("forbidden", `the user "${name}" is disabled`, { hint: `warren user enable ${name}` })
  }
  const account = passwdEntryOf(name)
  const isSame = account?.uid === record.uid && account.gid === record.gid && account.home === record.home
  if (!isSame || !(record.uid > 0 && record.gid > 0)) {
    throw new Fault("conflict", `the Linux account of "${name}" is not the one that was made for them`, {
      hint: "nothing is started for them until an administrator has looked",
    })
  }
  return record
}
