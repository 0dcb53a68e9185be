import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { errnoOf, Fault } from "@warren/base/fault.ts"
import type { Limits } from "../../sandbox-spec.ts"

/**
 * The kernel's resource groups, whichever version this machine has. Plain synchronous file access: each read or write is a
 * system call of microseconds on a file system that never waits, and a start makes twenty of them.
 */
export interface Cgroups {
  readonly version: 0 | 1 | 2
  /** Why nothing can be limited here; undefined when it can. */
  readonly missing?: string
  /** Makes one group with limits; `folders` are to be joined, one per hierarchy. */
  make(name: string, limits: Limits): Cgroup
  /** `pid`: of its init, for where there is no group to ask. */
  find(name: string, pid?: number): Cgroup
  /** What exists below our parent: after a crash, some of it has no owner. */
  names(): string[]
  /** Takes the empty parent away. */
  close(): void
}

export interface Cgroup {
  readonly folders: readonly string[]
  /** Resolves when nothing in it moves any more. */
  freeze(): Promise<void>
  thaw(): void
  /** Whoever did it. */
  isFrozen(): boolean
  /** What is in force, read back. */
  limits(): Pick<Limits, "cpus" | "memoryBytes" | "pidsMax">
  usage(): CgroupUsage
  oomKills(): number
}

export interface CgroupUsage {
  readonly memoryBytes: number
  readonly memoryPeakBytes: number
  readonly cpuUs: number
  readonly pids: number
  readonly pidsRefused: number
}

export const cpuPeriodUs = 100_000

export function cpuQuotaUs(cpus: number): number {
  return Math.max(1_000, Math.round(cpus * cpuPeriodUs))
}

/** How a group is frozen on one kind of cgroup. */
export interface Frost {
  begin(): void
  isComplete(): boolean
  end(): void
}

const freezing = {
  /** Most groups stand still at once; the kernel looks at them again whenever it is asked. */
  looksAtOnce: 200,
  betweenMs: 2,
  /** A group that forks all the time can stay half frozen: it is let go and caught again. */
  againMs: 250,
  timeoutMs: 10_000,
} as const

/** Its processes need the processor to come to a stop, so whoever waits for them gives it away. */
export async function freeze(frost: Frost): Promise<void> {
  const begun = performance.now()
  let caught = begun
  frost.begin()
  for (let looks = 1; !frost.isComplete(); looks++) {
    if (looks < freezing.looksAtOnce) continue
    const now = performance.now()
    if (now - begun > freezing.timeoutMs) {
      frost.end()
      throw new Fault("timeout", "the sandbox could not be paused", {
        hint: "something in it waits for the kernel; try again",
      })
    }
    if (now - caught > freezing.againMs) {
      caught = now
      frost.end()
      frost.begin()
    }
    await sleep(freezing.betweenMs)
  }
}

export function read(folder: string, file: string): string {
  return readFileSync(join(folder, file), "utf8").trim()
}

/** A number in a file; what the kernel calls `max` is Infinity, what is not there is 0. */
export function readNumber(folder: string, file: string): number {
  try {
    const text = read(folder, file)
    return text === "max" ? Number.POSITIVE_INFINITY : Number(text)
  } catch {
    return 0
  }
}

/** The number after `key` in a file of `key number` lines. */
export function readField(folder: string, file: string, key: string): number {
  try {
    const line = read(folder, file)
      .split("\n")
      .find((text) => text.startsWith(`${key} `))
    return Number(line?.slice(key.length + 1) ?? 0)
  } catch {
    return 0
  }
}

export function write(folder: string, file: string, value: string | number): void {
  try {
    writeFileSync(join(folder, file), String(value))
  } catch (cause) {
    throw new Fault("unavailable", `the limit ${file} cannot be set (${errnoOf(cause)})`, {
      cause,
      hint: "limits need a writable cgroup: run as root, or have one delegated to this user",
      subject: `cgroup:${folder}`,
    })
  }
}

export function makeFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true })
  } catch (cause) {
    throw new Fault("unavailable", `cannot make the cgroup ${path} (${errnoOf(cause)})`, {
      cause,
      hint: "limits need a writable cgroup: run as root, or have one delegated to this user",
    })
  }
}

/** Not empty is somebody else's business; not there is what was wanted. */
export function removeIfEmpty(path: string): void {
  try {
    rmdirSync(path)
  } catch (failure) {
    if (!["ENOENT", "EBUSY", "ENOTEMPTY"].includes(errnoOf(failure))) throw failure
  }
}
