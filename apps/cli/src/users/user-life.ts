import { existsSync } from "node:fs"
import { rm } from "node:fs/promises"
import { writeFileAtomic } from "@warren/base/atomic-file.ts"
import { Fault } from "@warren/base/fault.ts"
import { chmod } from "node:fs/promises"
import { runFolderOf, type Machine } from "@warren/protocol/launcher/machine.ts"
import { passwdEntryOf } from "@warren/protocol/launcher/passwd.ts"
import { readRecord, recordFileOf, type UserRecord } from "@warren/protocol/launcher/record.ts"
import type { ControlPlane } from "./control-plane.ts"
import type { Keeper } from "./keeper.ts"
import { addAccount, removeAccount, subordinateIdsOf } from "./linux-account.ts"
import { endProcesses, removeFolder, removeGroups } from "./remains.ts"

interface UsersOptions {
  readonly machine: Machine
  readonly keeper: Keeper
  readonly control: ControlPlane
}

interface Wanted {
  readonly name: string
  readonly role: "admin" | "member"
  readonly shell: string
  readonly ids: number
}

/** What is taken back is taken back also when whoever asked for it has gone. */
const undoMs = 60_000

/** Users of a machine with many: each is a Linux account with a runner, and all of it or nothing. */
export class UserLife {
  readonly #options: UsersOptions

  constructor(options: UsersOptions) {
    this.#options = options
  }

  /** The same when there is such a user and all is well with them. */
  async create(wanted: Wanted, signal: AbortSignal): Promise<UserRecord> {
    const { machine, keeper, control } = this.#options
    const { name } = wanted
    const known = readRecord(machine, name)
    await control.check(signal)
    if (known?.state === "active") {
      await keeper.start(name, signal)
      return known
    }
    if (known?.state === "disabled") {
      throw new Fault("conflict", `the user "${name}" is disabled`, { hint: `warren user enable ${name}` })
    }
    // One that was killed half-way: from the start again.
    if (known) await this.#takeAway(known, signal)
    refuseTaken(name, homeOf(name))
    return await this.#make(wanted, signal)
  }

  async setDisabled(name: string, isDisabled: boolean, signal: AbortSignal): Promise<UserRecord> {
    const { keeper, control } = this.#options
    const known = this.#known(name)
    if (known.state === "making") throw halfMade(name)
    // What keeps people out comes first, and what lets them in last.
    const record: UserRecord = { ...known, state: isDisabled ? "disabled" : "active" }
    if (isDisabled) {
      await control.setDisabled(name, true, signal)
      await this.#write(record)
      await keeper.stop(name, signal)
      await endProcesses(idsOf(record), signal)
      return record
    }
    await this.#write(record)
    await keeper.start(name, signal)
    await control.setDisabled(name, false, signal)
    return record
  }

  /** Everything of theirs: sandboxes, files, account. What a killed one has left is found by the record, which goes last. */
  async delete(name: string, signal: AbortSignal): Promise<void> {
    const record = this.#known(name)
    await this.#options.control.remove(name, signal)
    await this.#takeAway(record, signal)
  }

  async #make(wanted: Wanted, signal: AbortSignal): Promise<UserRecord> {
    const { keeper, control } = this.#options
    const { name, role } = wanted
    const home = homeOf(name)
    const draft: UserRecord = { name, uid: 0, gid: 0, home, state: "making", createdAt: new Date().toISOString() }
    let isRowOurs = false
    try {
      await this.#write(draft)
      const { uid, gid } = await addAccount({ ...wanted, home })
      signal.throwIfAborted()
      await this.#write({ ...draft, uid, gid })
      await keeper.start(name, signal)
      isRowOurs = await control.add(name, role, signal)
      const record: UserRecord = { ...draft, uid, gid, state: "active" }
      await this.#write(record)
      return record
    } catch (thrown) {
      const patience = AbortSignal.timeout(undoMs)
      if (isRowOurs) await control.remove(name, patience)
      await this.#takeAway(draft, patience)
      throw thrown
    }
  }

  async #takeAway(record: UserRecord, signal: AbortSignal): Promise<void> {
    const { machine, keeper } = this.#options
    const { name } = record
    const account = passwdEntryOf(name)
    if (account && account.home !== record.home) throw notOurs(name)
    await keeper.stop(name, signal)
    if (account) await endProcesses(idsOf({ name, uid: account.uid }), signal)
    await removeGroups(name, signal)
    removeFolder(runFolderOf(machine, name))
    if (account) removeFolder(record.home)
    await removeAccount(name)
    await rm(recordFileOf(machine, name), { force: true })
  }

  #known(name: string): UserRecord {
    const record = readRecord(this.#options.machine, name)
    if (record) return record
    throw new Fault("not_found", `there is no user "${name}" on this machine`, { hint: "warren user list" })
  }

  async #write(record: UserRecord): Promise<void> {
    const file = recordFileOf(this.#options.machine, record.name)
    await writeFileAtomic(file, `${JSON.stringify(record)}\n`)
    await chmod(file, 0o644)
  }
}

const homeOf = (name: string): string => `/home/${name}`

/** An account, a group or a folder that was there before is somebody's: it is neither used nor taken away. */
function refuseTaken(name: string, home: string): void {
  if (passwdEntryOf(name)) throw notOurs(name)
  if (existsSync(home)) throw new Fault("conflict", `${home} is there already`, { hint: "move it away first" })
}

function notOurs(name: string): Fault {
  return new Fault("conflict", `there is a Linux account "${name}" that Warren has not made`, {
    hint: "choose another name",
  })
}

function halfMade(name: string): Fault {
  return new Fault("conflict", `the user "${name}" was made only half`, { hint: `warren user create ${name}` })
}

function idsOf({ name, uid }: { name: string; uid: number }): { first: number; count: number }[] {
  return [{ first: uid, count: 1 }, ...subordinateIdsOf(name, "uid")]
}
