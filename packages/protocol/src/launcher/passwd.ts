import { readFileSync } from "node:fs"

export interface PasswdEntry {
  readonly name: string
  readonly uid: number
  readonly gid: number
  readonly home: string
}

/** The Linux account of this name, of those that are kept in this machine's own files. */
export function passwdEntryOf(name: string): PasswdEntry | undefined {
  const lines = readFileSync("/etc/passwd", "utf8").split("\n")
  const [, , uid, gid, , home] = lines.find((line) => line.startsWith(`${name}:`))?.split(":") ?? []
  return home === undefined ? undefined : { name, uid: Number(uid), gid: Number(gid), home }
}
