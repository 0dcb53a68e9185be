import { execFile } from "node:child_process"
import { chmod } from "node:fs/promises"
import { existsSync, readFileSync } from "node:fs"
import { promisify } from "node:util"
import { Fault } from "@warren/base/fault.ts"
import { passwdEntryOf, type PasswdEntry } from "@warren/protocol/launcher/passwd.ts"

const run = promisify(execFile)

export interface IdRange {
  readonly first: number
  readonly count: number
}

interface Wanted {
  readonly name: string
  readonly home: string
  readonly shell: string
  /** Subordinate ids; each sandbox takes 65,536. */
  readonly ids: number
}

/** An ordinary account without a password: nobody signs in to the machine with it, unless root lets them. */
export async function addAccount({ name, home, shell, ids }: Wanted): Promise<PasswdEntry> {
  const counts = ["SUB_UID_COUNT", "SUB_GID_COUNT"].flatMap((key) => ["-K", `${key}=${ids}`])
  const about = ["--create-home", "--home-dir", home, "--user-group", "--shell", shell, "--comment", "Warren user"]
  await program("useradd", [...about, ...counts, "--", name])
  await chmod(home, 0o700)
  const made = passwdEntryOf(name)
  if (!made || made.uid < 1 || made.gid < 1) throw new Fault("internal", `the account "${name}" was not made as asked`)
  if (subordinateIdsOf(name, "uid").length === 0 || subordinateIdsOf(name, "gid").length === 0) {
    throw new Fault("unavailable", "this machine gave the account no subordinate ids", {
      hint: "make the files /etc/subuid and /etc/subgid, and look at SUB_UID_MAX in /etc/login.defs",
    })
  }
  return made
}

/** With its ranges; its home is gone already. The same when there is none. */
export async function removeAccount(name: string): Promise<void> {
  if (!passwdEntryOf(name)) return
  await program("userdel", ["--", name])
}

/** A set of ids that belong to an account besides its own. */
export function subordinateIdsOf(name: string, kind: "uid" | "gid"): IdRange[] {
  const file = `/etc/sub${kind}`
  const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : []
  const granted = lines.map((line) => line.split(":")).filter(([who]) => who === name)
  return granted.map(([, first, count]) => ({ first: Number(first), count: Number(count) }))
}

async function program(name: string, args: readonly string[]): Promise<void> {
  try {
    await run(name, args)
  } catch (cause) {
    const said = ((cause as { stderr?: string }).stderr ?? "").trim()
    throw new Fault("unavailable", `${name} did not do it: ${said || "it could not be run"}`, { cause })
  }
}
