import { readFileSync } from "node:fs"
import { z } from "zod"

/** A process that cannot be mistaken for another: a pid is used again, but not together with the time of its start. */
export const ProcessIdentity = z.object({ pid: z.int().min(1), startTicks: z.string() })
export type ProcessIdentity = z.output<typeof ProcessIdentity>

export function identityOf(pid: number): ProcessIdentity {
  return { pid, startTicks: startTicksOf(pid) ?? "" }
}

export function isAlive({ pid, startTicks }: ProcessIdentity): boolean {
  return startTicksOf(pid) === startTicks
}

/** Field 22 of its stat; the name before it may contain anything, so it is counted from the last bracket. */
function startTicksOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
    return fields[0] === "Z" ? undefined : fields[19]
  } catch {
    return undefined
  }
}
