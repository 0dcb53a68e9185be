import { execFile } from "node:child_process"
import { chmod, chown, lstat, mkdir } from "node:fs/promises"
import { promisify } from "node:util"
import { Fault } from "@warren/base/fault.ts"
import { recordsOf, type Machine } from "@warren/protocol/launcher/machine.ts"
import { passwdEntryOf } from "@warren/protocol/launcher/passwd.ts"
import { controlRootOf } from "@warren/protocol/places.ts"
import type { Identity } from "./identity.ts"

const run = promisify(execFile)

/** What a machine with many users stands on: the control plane's account, and folders that are root's. */
export async function prepareMachine(machine: Machine): Promise<Identity> {
  const account = passwdEntryOf(machine.controlAccount) ?? (await makeAccount(machine.controlAccount))
  if (account.uid === 0 || account.gid === 0) {
    throw new Fault("forbidden", "the control plane's account is root's", { hint: "give it one without rights" })
  }
  await rootFolder(machine.machine, 0o755)
  await rootFolder(recordsOf(machine), 0o755)
  await rootFolder(machine.run, 0o755)
  // Passed through by runners, which read the public key in it; what is in it besides is for its owner only.
  const folder = controlRootOf(machine.machine)
  await mkdir(folder, { recursive: true, mode: 0o711 })
  await refuseLink(folder)
  await chown(folder, account.uid, account.gid)
  await chmod(folder, 0o711)
  return account
}

async function makeAccount(name: string): Promise<Identity> {
  const about = ["--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"]
  await run("useradd", [...about, "--shell", "/usr/sbin/nologin", "--comment", "Warren control plane", "--", name])
  const made = passwdEntryOf(name)
  if (!made) throw new Fault("internal", `the account "${name}" was not made`)
  return made
}

async function rootFolder(path: string, mode: number): Promise<void> {
  await mkdir(path, { recursive: true, mode })
  await refuseLink(path)
  const { uid, mode: found } = await lstat(path)
  if (uid !== 0 || (found & 0o022) !== 0) {
    throw new Fault("forbidden", `others than root can write ${path}`, { hint: "whoever can, could be anybody" })
  }
}

async function refuseLink(path: string): Promise<void> {
  if (!(await lstat(path)).isDirectory()) throw new Fault("forbidden", `${path} is not a folder`)
}
