import { readFileSync } from "node:fs"
import { join } from "node:path"
import { groupOf } from "./machine.ts"

/** A user's cgroups: one folder below each hierarchy that limits need. */
export interface GroupFolders {
  readonly version: 1 | 2
  readonly folders: readonly string[]
}

const v1Controllers = ["memory", "cpu", "cpuacct", "pids", "freezer"]

export function groupFoldersOf(user: string, mounts = readFileSync("/proc/self/mounts", "utf8")): GroupFolders {
  const lines = mounts.split("\n").map((line) => line.split(" "))
  const v1 = lines.filter(([, , type, options = ""]) => type === "cgroup" && hasOneOf(options))
  const found = v1.length > 0 ? v1 : lines.filter(([, , type]) => type === "cgroup2")
  const tops = new Set(found.map(([, top = ""]) => top))
  return { version: v1.length > 0 ? 1 : 2, folders: [...tops].map((top) => join(top, groupOf(user))) }
}

function hasOneOf(options: string): boolean {
  const given = options.split(",")
  return v1Controllers.some((name) => given.includes(name))
}
