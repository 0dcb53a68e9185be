import { readFileSync } from "node:fs"
import { join } from "node:path"
import { cgroupMounts } from "@warren/drivers/oci/cgroup/open.ts"
import type { Sandbox } from "@warren/drivers/driver.ts"

export interface SandboxMemory {
  /** Pages that only its processes have. */
  readonly own: number
  /** What the kernel holds for it and counts in its group: stacks, page tables, mounts, namespaces. */
  readonly kernel: number
  /** All that its group counts: the two above, and files it was the first to read. */
  readonly group: number
}

/** In bytes. */
export async function memoryOf(sandbox: Sandbox): Promise<SandboxMemory> {
  const folder = await groupOf(sandbox)
  const read = (file: string): string => readFileSync(join(folder, file), "utf8")
  const pids = read("cgroup.procs").trim().split("\n")
  const own = pids.reduce((sum, pid) => sum + privateBytes(pid), 0)
  if (!isVersion1)
    return { own, kernel: fieldOf(read("memory.stat"), "kernel "), group: Number(read("memory.current")) }
  const kernel = Number(read("memory.kmem.usage_in_bytes"))
  return { own, kernel, group: Number(read("memory.usage_in_bytes")) }
}

/** Memory that programs could have now. */
export function availableBytes(): number {
  return fieldOf(readFileSync("/proc/meminfo", "utf8"), "MemAvailable:") * 1024
}

const { v1, v2 } = cgroupMounts(readFileSync("/proc/self/mountinfo", "utf8"))
const memoryMount = v1.get("memory")
const isVersion1 = memoryMount !== undefined

/** The folder of its memory group. */
async function groupOf(sandbox: Sandbox): Promise<string> {
  const { cgroups } = await sandbox.posture()
  const name = Object.keys(cgroups).find((controllers) => controllers.split(",").includes(isVersion1 ? "memory" : ""))
  return join(memoryMount ?? v2 ?? "", cgroups[name ?? ""] ?? "")
}

function privateBytes(pid: string): number {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8")
  return (fieldOf(text, "Private_Clean:") + fieldOf(text, "Private_Dirty:")) * 1024
}

function fieldOf(text: string, name: string): number {
  const line = text.split("\n").find((candidate) => candidate.startsWith(name)) ?? ""
  return Number.parseInt(line.slice(name.length), 10)
}
