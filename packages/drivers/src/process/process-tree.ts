import { readdirSync, readFileSync } from "node:fs"
import type { ProcessName } from "../oci/launcher.ts"

interface Process {
  readonly pid: number
  readonly parent: number
  readonly isDead: boolean
  readonly startTicks: string
  readonly cpuTicks: number
  readonly rssPages: number
}

/** USER_HZ, the same on every Linux we run on, and the page size of x86-64 and of most ARM machines. */
const ticksPerSecond = 100
const pageBytes = 4096

/** One line of /proc, or undefined when there is no such process. */
export function readProcess(pid: number): Process | undefined {
  const stat = read(`/proc/${pid}/stat`)
  if (stat === undefined) return undefined
  // The second field is the program's name, in brackets, and may hold anything, brackets too.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  const cpu = fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0)
  return {
    pid,
    parent: Number(fields[1]),
    isDead: fields[0] === "Z" || fields[0] === "X",
    startTicks: fields[19] ?? "",
    cpuTicks: cpu,
    rssPages: Number(fields[21]),
  }
}

/** What has ended and was not waited for is not alive. */
export function isAlive(name: ProcessName): boolean {
  const found = readProcess(name.pid)
  return found !== undefined && !found.isDead && found.startTicks === name.startTicks
}

export function allPids(): number[] {
  return readdirSync("/proc").map(Number).filter(Number.isInteger)
}

/** The living processes below one. */
export function descendants(root: number): Process[] {
  const all = allPids().flatMap((pid) => readProcess(pid) ?? [])
  const found: Process[] = []
  for (let parents = new Set([root]); parents.size > 0;) {
    const children = all.filter(({ parent }) => parents.has(parent))
    found.push(...children)
    parents = new Set(children.map(({ pid }) => pid))
  }
  return found.filter(({ isDead }) => !isDead)
}

/** What a tree uses, counted process by process: for machines whose cgroups cannot be written. */
export function treeUsage(root: number): { memoryBytes: number; cpuUs: number; pids: number } {
  const tree = descendants(root)
  return {
    memoryBytes: tree.reduce((sum, { rssPages }) => sum + rssPages, 0) * pageBytes,
    cpuUs: (tree.reduce((sum, { cpuTicks }) => sum + cpuTicks, 0) * 1_000_000) / ticksPerSecond,
    pids: tree.length,
  }
}

/** Threads of a user, which is what RLIMIT_NPROC counts. */
export function threadsOf(uid: number): number {
  return allPids().reduce((sum, pid) => {
    const status = read(`/proc/${pid}/status`) ?? ""
    return uidIn(status) === uid ? sum + Number(/^Threads:\t(\d+)/m.exec(status)?.[1] ?? 0) : sum
  }, 0)
}

/** The real uid of a process; undefined when it is gone. */
export function uidOf(pid: number): number | undefined {
  return uidIn(read(`/proc/${pid}/status`) ?? "")
}

export function environmentOf(pid: number): string {
  return read(`/proc/${pid}/environ`) ?? ""
}

function uidIn(status: string): number | undefined {
  const found = /^Uid:\t(\d+)/m.exec(status)?.[1]
  return found === undefined ? undefined : Number(found)
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return undefined
  }
}
