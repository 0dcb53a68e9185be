import { readdirSync, readFileSync, readlinkSync } from "node:fs"
import { Fault } from "@warren/base/fault.ts"
import type { Cgroup, Cgroups, CgroupUsage } from "./cgroup.ts"

/**
 * No groups: an ordinary user to whom none were delegated. Nothing is limited and nothing can be paused; what ends a sandbox is
 * the end of its init, with which the kernel ends all of its processes.
 */
export class NoCgroups implements Cgroups {
  readonly version = 0
  readonly missing: string

  constructor(missing: string) {
    this.missing = missing
  }

  make(): Cgroup {
    return new NoCgroup(undefined)
  }

  find(_name: string, pid?: number): Cgroup {
    return new NoCgroup(pid)
  }

  names(): string[] {
    return []
  }

  close(): void {
    // There is nothing to take away.
  }
}

class NoCgroup implements Cgroup {
  readonly folders: readonly string[] = []
  readonly #init: number | undefined
  #memoryPeakBytes = 0

  constructor(init: number | undefined) {
    this.#init = init
  }

  freeze(): Promise<void> {
    return Promise.reject(new Fault("unsupported", "a sandbox without cgroups cannot be paused"))
  }

  isFrozen(): boolean {
    return false
  }

  thaw(): void {
    // Nothing was ever frozen.
  }

  limits(): { cpus: number; memoryBytes: number; pidsMax: number } {
    const none = Number.POSITIVE_INFINITY
    return { cpus: none, memoryBytes: none, pidsMax: none }
  }

  /** Added up over the processes that are there now, with the time of those that init has buried. */
  usage(): CgroupUsage {
    const processes = this.#init === undefined ? [] : processesOf(this.#init)
    const memoryBytes = processes.reduce((sum, one) => sum + one.memoryBytes, 0)
    this.#memoryPeakBytes = Math.max(this.#memoryPeakBytes, memoryBytes)
    return {
      memoryBytes,
      memoryPeakBytes: this.#memoryPeakBytes,
      cpuUs: processes.reduce((sum, one) => sum + one.cpuUs, 0),
      pids: processes.length,
      pidsRefused: 0,
    }
  }

  oomKills(): number {
    return 0
  }
}

/** The kernel tells times to programs in hundredths of a second, and memory in pages. */
const tickUs = 10_000
const pageBytes = 4096

/** Everything in the pid namespace of `init`. */
function processesOf(init: number): { memoryBytes: number; cpuUs: number }[] {
  const namespace = namespaceOf(init)
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name))
  return pids.flatMap((pid) => {
    if (namespace === undefined || namespaceOf(Number(pid)) !== namespace) return []
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
      // From the third field on; the second is a name that may hold anything.
      const fields = stat
        .slice(stat.lastIndexOf(")") + 2)
        .split(" ")
        .map(Number)
      const [utime = 0, stime = 0, childrenUtime = 0, childrenStime = 0] = fields.slice(11, 15)
      const cpuUs = (utime + stime + childrenUtime + childrenStime) * tickUs
      return [{ memoryBytes: (fields[21] ?? 0) * pageBytes, cpuUs }]
    } catch {
      return []
    }
  })
}

function namespaceOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`)
  } catch {
    return undefined
  }
}
