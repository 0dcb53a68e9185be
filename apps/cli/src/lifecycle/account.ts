import { readFileSync } from "node:fs"
import { chown, mkdir } from "node:fs/promises"
import { userInfo } from "node:os"
import { errnoOf, Fault } from "@warren/base/fault.ts"
import type { Plan } from "./plan.ts"

/** The Linux account a runner is to be started as; undefined when that is who we are. */
export function accountOf(name: string | undefined): Plan["account"] {
  const me = userInfo()
  if (name === undefined || name === me.username) return undefined
  const line = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .find((entry) => entry.startsWith(`${name}:`))
  if (line === undefined) throw new Fault("not_found", `there is no Linux account "${name}"`)
  if (me.uid !== 0) {
    throw new Fault("forbidden", `only root and ${name} can start the runner of ${name}`, {
      hint: `sudo -u ${name} warren …`,
    })
  }
  const [, , uid, gid, , home = "/"] = line.split(":")
  return { name, uid: Number(uid), gid: Number(gid), home }
}

/** The folder of a user's data, theirs and nobody else's. */
export async function makeHome({ home, account }: Plan): Promise<void> {
  const made = await mkdir(home, { recursive: true, mode: 0o700 }).catch((cause: unknown) => {
    throw new Fault("forbidden", `the folder ${home} cannot be made (${errnoOf(cause)})`, { cause })
  })
  if (made !== undefined && account) await chown(home, account.uid, account.gid)
}
