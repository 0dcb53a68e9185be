import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { cgroupMounts } from "@warren/drivers/oci/cgroup/open.ts"

export interface SandboxMemory {
  /** Pages that only its processes have. */
  readonly own: number
  /** What the kernel holds for it and counts in its group: stacks, page tables, mounts, namespaces. */
  readonly kernel: number
  /** All that its group counts: the two above, and files it was the first to read. */
  readonly group: number
}

interface Grouped {
  posture(): Promise<{ readonly cgroups: Readonly<Record<string, string>> }>
}

/** In bytes. */
export async function memoryOf(sandbox: Grouped): Promise<SandboxMemory> {
  return memoryOfGroup(await groupOf(sandbox))
}

/** Of one group below the memory hierarchy, or below the only one. */
export function memoryOfGroup(group: string): SandboxMemory {
  const read = (file: string): string => readFileSync(join(memoryRoot, group, file), "utf8")
  const pids = read("cgroup.procs").split("\n").filter(Boolean)
  const own = pids.reduce((sum, pid) => sum + privateBytes(pid), 0)
  if (!isVersion1)
    return { own, kernel: fieldOf(read("memory.stat"), "kernel "), group: Number(read("memory.current")) }
  const kernel = Number(read("memory.kmem.usage_in_bytes"))
  return { own, kernel, group: Number(read("memory.usage_in_bytes")) }
}

/** Of all groups right below this one, together. */
export function memoryBelow(parent: string): SandboxMemory {
  const below = readdirSync(join(memoryRoot, parent), { withFileTypes: true }).filter((entry) => entry.isDirectory())
  return sumOf(below.map(({ name }) => memoryOfGroup(join(parent, name))))
}

export function sumOf(all: readonly SandboxMemory[]): SandboxMemory {
  const of = (part: keyof SandboxMemory): number => all.reduce((total, one) => total + one[part], 0)
  return { own: of("own"), kernel: of("kernel"), group: of("group") }
}

/** Memory that programs could have now. */
export function availableBytes(): number {
  return fieldOf(readFileSync("/proc/meminfo", "utf8"), "MemAvailable:") * 1024
}

/** All it has in memory, shared or not. */
export function residentBytes(pid: number): number {
  return fieldOf(readFileSync(`/proc/${pid}/status`, "utf8"), "VmRSS:") * 1024
}

/** The pages nobody else has; 0 when it is gone. */
export function privateBytes(pid: string): number {
  try {
    const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8")
    return (fieldOf(text, "Private_Clean:") + fieldOf(text, "Private_Dirty:")) * 1024
  } catch {
    return 0
  }
}

const { v1, v2 } = cgroupMounts(readFileSync("/proc/self/mountinfo", "utf8"))
const memoryMount = v1.get("memory")
const isVersion1 = memoryMount !== undefined
const memoryRoot = memoryMount ?? v2 ?? ""

/** Its memory group. */
export async function groupOf(sandbox: Grouped): Promise<string> {
  const { cgroups } = await sandbox.posture()
  const name = Object.keys(cgroups).find((controllers) => controllers.split(",").includes(isVersion1 ? "memory" : ""))
  return cgroups[name ?? ""] ?? ""
}

function fieldOf(text: string, name: string): number {
  const line = text.split("\n").find((candidate) => candidate.startsWith(name)) ?? ""
  return Number.parseInt(line.slice(name.length), 10)
}
