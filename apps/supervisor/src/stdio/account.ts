import { readFileSync } from "node:fs"
import { Fault } from "@warren/base/fault.ts"

export interface Account {
  readonly uid: number
  readonly gid: number
  readonly home: string
}

/** Who the agent runs as: only root can choose, and some agents refuse to be root. */
export function accountOf(name: string): Account {
  const line = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .find((one) => one.startsWith(`${name}:`))
  const [, , uid, gid, , home = "/"] = line?.split(":") ?? []
  if (uid === undefined || gid === undefined) throw new Fault("not_found", `there is no user ${name}`)
  return { uid: Number(uid), gid: Number(gid), home }
}
