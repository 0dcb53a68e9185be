import { readFileSync } from "node:fs"
import { totalmem } from "node:os"

/** Facts about the host: we may have no right to go above them. */
export interface Machine {
  readonly memoryBytes: number
  /** Hard limits of the process that calls the runtime. */
  readonly openFilesMax: number
  readonly processesMax: number
  /** Its oom_score_adj: it may be raised, not lowered. */
  readonly oomScoreAdj: number
}

export function thisMachine(): Machine {
  const limits = readFileSync("/proc/self/limits", "utf8")
  return {
    memoryBytes: totalmem(),
    openFilesMax: hardLimit(limits, "Max open files"),
    processesMax: hardLimit(limits, "Max processes"),
    oomScoreAdj: Number(readFileSync("/proc/self/oom_score_adj", "utf8")),
  }
}

/** `Max open files            1024                 524288               files` */
export function hardLimit(limits: string, name: string): number {
  const line = limits.split("\n").find((candidate) => candidate.startsWith(name)) ?? ""
  const [, hard] = line.slice(name.length).trim().split(/\s+/)
  return hard === "unlimited" ? Number.MAX_SAFE_INTEGER : Number(hard ?? 0)
}
