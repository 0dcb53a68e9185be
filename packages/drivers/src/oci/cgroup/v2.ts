import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import type { Limits } from "../../sandbox-spec.ts"
import * as group from "./cgroup.ts"
import type { Cgroup, Cgroups, CgroupUsage } from "./cgroup.ts"

const required = ["cpu", "memory", "pids"]

/** One tree for everything. */
export class CgroupsV2 implements Cgroups {
  readonly version = 2
  readonly #parent: string

  constructor(mount: string, parent: string) {
    const available = new Set(group.read(mount, "cgroup.controllers").split(" "))
    const missing = required.filter((controller) => !available.has(controller))
    if (missing.length > 0)
      throw new Fault("unavailable", `this machine's cgroups have no ${missing.join(", ")} controller`)
    this.#parent = join(mount, parent)
    const enable = required.map((controller) => `+${controller}`).join(" ")
    group.write(mount, "cgroup.subtree_control", enable)
    group.makeFolder(this.#parent)
    group.write(this.#parent, "cgroup.subtree_control", enable)
  }

  make(name: string, limits: Limits): Cgroup {
    const folder = join(this.#parent, name)
    group.makeFolder(folder)
    group.write(folder, "memory.max", limits.memoryBytes)
    // Absent without swap.
    if (existsSync(join(folder, "memory.swap.max"))) group.write(folder, "memory.swap.max", 0)
    group.write(folder, "cpu.max", `${group.cpuQuotaUs(limits.cpus)} ${group.cpuPeriodUs}`)
    group.write(folder, "pids.max", limits.pidsMax)
    return this.find(name)
  }

  find(name: string): Cgroup {
    return new CgroupV2(join(this.#parent, name))
  }

  names(): string[] {
    if (!existsSync(this.#parent)) return []
    const entries = readdirSync(this.#parent, { withFileTypes: true })
    return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name)
  }

  close(): void {
    group.removeIfEmpty(this.#parent)
  }
}

export class CgroupV2 implements Cgroup {
  readonly folders: readonly string[]
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
    this.folders = [folder]
  }

  freeze(): Promise<void> {
    return group.freeze({
      begin: () => group.write(this.#folder, "cgroup.freeze", 1),
      isComplete: () => group.readField(this.#folder, "cgroup.events", "frozen") === 1,
      end: () => this.thaw(),
    })
  }

  isFrozen(): boolean {
    return group.read(this.#folder, "cgroup.freeze") !== "0"
  }

  thaw(): void {
    group.write(this.#folder, "cgroup.freeze", 0)
  }

  limits(): Pick<Limits, "cpus" | "memoryBytes" | "pidsMax"> {
    const [quota, period] = group.read(this.#folder, "cpu.max").split(" ").map(Number)
    return {
      cpus: (quota ?? 0) / (period ?? 1),
      memoryBytes: group.readNumber(this.#folder, "memory.max"),
      pidsMax: group.readNumber(this.#folder, "pids.max"),
    }
  }

  usage(): CgroupUsage {
    return {
      memoryBytes: group.readNumber(this.#folder, "memory.current"),
      memoryPeakBytes: group.readNumber(this.#folder, "memory.peak"),
      cpuUs: group.readField(this.#folder, "cpu.stat", "usage_usec"),
      pids: group.readNumber(this.#folder, "pids.current"),
      pidsRefused: group.readField(this.#folder, "pids.events", "max"),
    }
  }

  oomKills(): number {
    return group.readField(this.#folder, "memory.events", "oom_kill")
  }
}
