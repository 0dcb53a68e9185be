import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import type { Limits } from "../../sandbox-spec.ts"
import * as group from "./cgroup.ts"
import type { Cgroup, Cgroups, CgroupUsage } from "./cgroup.ts"

/** Limits need these; without one of them a sandbox would be unlimited, so none is made. */
const required = ["memory", "cpu", "cpuacct", "pids", "freezer"] as const
type Controller = (typeof required)[number] | "devices"

/** null, zero, full, random, urandom, tty, ptmx and pseudo-terminals: what a sandbox may open, and nothing else. */
const devices = [
  "c 1:3 rwm",
  "c 1:5 rwm",
  "c 1:7 rwm",
  "c 1:8 rwm",
  "c 1:9 rwm",
  "c 5:0 rwm",
  "c 5:2 rwm",
  "c 136:* rwm",
]

/** One tree per controller (some share one), each with a folder of the same name. */
export class CgroupsV1 implements Cgroups {
  readonly version = 1
  readonly #parents: ReadonlyMap<Controller, string>

  /** `mounts`: where each controller is mounted. */
  constructor(mounts: ReadonlyMap<string, string>, parent: string) {
    const parents = new Map<Controller, string>()
    for (const controller of required) {
      const mount = mounts.get(controller)
      if (!mount) throw new Fault("unavailable", `this machine's cgroups have no ${controller} controller`)
      parents.set(controller, join(mount, parent))
    }
    const deviceMount = mounts.get("devices")
    if (deviceMount) parents.set("devices", join(deviceMount, parent))
    this.#parents = parents
    for (const folder of parents.values()) group.makeFolder(folder)
  }

  make(name: string, limits: Limits): Cgroup {
    for (const parent of new Set(this.#parents.values())) group.makeFolder(join(parent, name))
    const at = (controller: Controller): string => join(this.#parents.get(controller) ?? "", name)
    group.write(at("memory"), "memory.limit_in_bytes", limits.memoryBytes)
    // Absent when the kernel does not account swap; then there is none to use either.
    if (existsSync(join(at("memory"), "memory.memsw.limit_in_bytes"))) {
      group.write(at("memory"), "memory.memsw.limit_in_bytes", limits.memoryBytes)
    }
    group.write(at("cpu"), "cpu.cfs_period_us", group.cpuPeriodUs)
    group.write(at("cpu"), "cpu.cfs_quota_us", group.cpuQuotaUs(limits.cpus))
    group.write(at("pids"), "pids.max", limits.pidsMax)
    if (this.#parents.has("devices")) {
      group.write(at("devices"), "devices.deny", "a")
      for (const device of devices) group.write(at("devices"), "devices.allow", device)
    }
    return this.find(name)
  }

  find(name: string): Cgroup {
    return new CgroupV1(new Map([...this.#parents].map(([controller, parent]) => [controller, join(parent, name)])))
  }

  names(): string[] {
    const names = [...this.#parents.values()].flatMap((parent) => {
      if (!existsSync(parent)) return []
      return readdirSync(parent, { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map((entry) => entry.name)
    })
    return [...new Set(names)]
  }

  close(): void {
    for (const folder of this.#parents.values()) group.removeIfEmpty(folder)
  }
}

class CgroupV1 implements Cgroup {
  readonly folders: readonly string[]
  readonly #folders: ReadonlyMap<Controller, string>

  constructor(folders: ReadonlyMap<Controller, string>) {
    this.#folders = folders
    this.folders = [...new Set(folders.values())]
  }

  freeze(): Promise<void> {
    const folder = this.#at("freezer")
    return group.freeze({
      begin: () => group.write(folder, "freezer.state", "FROZEN"),
      isComplete: () => group.read(folder, "freezer.state") === "FROZEN",
      end: () => this.thaw(),
    })
  }

  isFrozen(): boolean {
    return group.read(this.#at("freezer"), "freezer.state") !== "THAWED"
  }

  thaw(): void {
    group.write(this.#at("freezer"), "freezer.state", "THAWED")
  }

  limits(): Pick<Limits, "cpus" | "memoryBytes" | "pidsMax"> {
    return {
      cpus: group.readNumber(this.#at("cpu"), "cpu.cfs_quota_us") / group.cpuPeriodUs,
      memoryBytes: group.readNumber(this.#at("memory"), "memory.limit_in_bytes"),
      pidsMax: group.readNumber(this.#at("pids"), "pids.max"),
    }
  }

  usage(): CgroupUsage {
    return {
      memoryBytes: group.readNumber(this.#at("memory"), "memory.usage_in_bytes"),
      memoryPeakBytes: group.readNumber(this.#at("memory"), "memory.max_usage_in_bytes"),
      cpuUs: Math.round(group.readNumber(this.#at("cpuacct"), "cpuacct.usage") / 1_000),
      pids: group.readNumber(this.#at("pids"), "pids.current"),
      pidsRefused: group.readField(this.#at("pids"), "pids.events", "max"),
    }
  }

  oomKills(): number {
    return group.readField(this.#at("memory"), "memory.oom_control", "oom_kill")
  }

  #at(controller: Controller): string {
    return this.#folders.get(controller) ?? ""
  }
}
