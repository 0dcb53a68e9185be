import { readFileSync } from "node:fs"

/** When a process started, in the kernel's ticks: with its pid, a name that is never used twice. Undefined when it is gone. */
export function startTicksOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
    // The second field is the program's name, in brackets, and may hold anything, brackets too.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]
  } catch {
    return undefined
  }
}
