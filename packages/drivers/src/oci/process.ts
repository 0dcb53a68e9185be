import { readFileSync } from "node:fs"
import { join } from "node:path"

/** When a process started, in the kernel's ticks: with its pid, a name that is never used twice. Undefined when it is gone. */
export function startTicksOf(pid: number): string | undefined {
  return fieldsOf(pid)?.[19]
}

/** From the third on. */
function fieldsOf(pid: number): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
    // The second field is the program's name, in brackets, and may hold anything, brackets too.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  } catch {
    return undefined
  }
}

/** What the kernel does with a process: `R`, `S`, …; a stopped one is `T`, one that has ended `Z`. Undefined: there is none. */
export function stateOf({
  pid,
  startTicks,
}: {
  readonly pid: number
  readonly startTicks: string
}): string | undefined {
  const fields = fieldsOf(pid)
  return fields?.[19] === startTicks ? fields[0] : undefined
}

/**
 * Whether a process is in one of these groups. A pid and a start time are a name only until the next boot: after it both may
 * be those of somebody else, who is in no group of ours.
 */
export function isInGroup(pid: number, folders: readonly string[]): boolean {
  return folders.some((folder) => membersOf(folder).includes(String(pid)))
}

function membersOf(folder: string): string[] {
  try {
    return readFileSync(join(folder, "cgroup.procs"), "utf8").split("\n")
  } catch {
    return []
  }
}

/** The host id that root inside of a process's user namespace is; undefined when it is gone. */
export function mapBaseOf(pid: number): number | undefined {
  try {
    return Number(readFileSync(`/proc/${pid}/uid_map`, "utf8").trim().split(/\s+/)[1])
  } catch {
    return undefined
  }
}
