import { lstatSync } from "node:fs"
import { join } from "node:path"
import type { Limits } from "@warren/drivers/sandbox-spec.ts"
import type { OciConfig } from "@warren/drivers/oci/spec/oci.ts"

/** One act of `baseline/steps.c`. */
export type Step = readonly [act: string, ...words: string[]]

/** As mount(2) counts them. */
const flags = { readonly: 1, nosuid: 2, nodev: 4, noexec: 8, remount: 32, bind: 4096 }
type Flag = keyof typeof flags

export function mount(source: string, target: string, type: string, names: readonly Flag[], data = ""): Step {
  return ["mount", source, target, type, String(names.reduce((sum, name) => sum + flags[name], 0)), data]
}

/** A bind takes its own flags only when it is mounted a second time. */
export function bind(source: string, target: string, names: readonly Flag[]): readonly Step[] {
  return [mount(source, target, "", ["bind"]), mount("", target, "", ["bind", "remount", ...names])]
}

/** What a mask hides, told by what it is on this machine; what is not there needs none. */
export function kindOf(path: string): "file" | "folder" | undefined {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  return stats && (stats.isDirectory() ? "folder" : "file")
}

/** The character devices of a sandbox, which in a user namespace can only be bound. */
export const devices: readonly string[] = ["null", "zero", "full", "tty", "random", "urandom"]

/** Everything the runtime mounts for this config, as bare system calls relative to the root. */
export function mountSteps({ mounts, linux }: OciConfig): readonly Step[] {
  const below = (path: string): string => path.slice(1)
  const masks = linux.maskedPaths.flatMap((path) => {
    const kind = kindOf(path)
    if (kind === "folder") return [mount("tmpfs", below(path), "tmpfs", ["readonly", "nosuid", "nodev", "noexec"])]
    return kind ? bind("/dev/null", below(path), ["readonly", "nosuid", "noexec"]) : []
  })
  const fixed = linux.readonlyPaths.filter((path) => kindOf(path) && !linux.maskedPaths.includes(path))
  return [
    ...mounts.flatMap(({ destination, type, source, options }): Step[] => [
      ["mkdir", below(destination)],
      mount(source, below(destination), type, options.filter(isFlag), options.filter((one) => !isFlag(one)).join(",")),
    ]),
    ...devices.flatMap((name): Step[] => [
      ["touch", `dev/${name}`],
      mount(`/dev/${name}`, `dev/${name}`, "", ["bind"]),
    ]),
    ["link", "pts/ptmx", "dev/ptmx"],
    ["link", "/proc/self/fd", "dev/fd"],
    ["link", "/proc/self/fd/0", "dev/stdin"],
    ["link", "/proc/self/fd/1", "dev/stdout"],
    ["link", "/proc/self/fd/2", "dev/stderr"],
    ...masks,
    ...fixed.flatMap((path) => bind(below(path), below(path), ["readonly", "nosuid", "nodev", "noexec"])),
  ]
}

function isFlag(option: string): option is Flag {
  return option in flags
}

export interface CgroupSteps {
  readonly make: readonly Step[]
  readonly join: readonly Step[]
  readonly remove: readonly Step[]
}

const cpuPeriodUs = 100_000

/** The limits the driver sets, in the groups `folders` (one for each hierarchy) of whichever version this machine has. */
export function cgroupSteps(version: 1 | 2, folders: readonly string[], limits: Limits): CgroupSteps {
  const quota = String(limits.cpus * cpuPeriodUs)
  const files: Readonly<Record<string, string>> =
    version === 2
      ? {
          "memory.max": String(limits.memoryBytes),
          "cpu.max": `${quota} ${cpuPeriodUs}`,
          "pids.max": `${limits.pidsMax}`,
        }
      : {
          "memory.limit_in_bytes": String(limits.memoryBytes),
          "memory.memsw.limit_in_bytes": String(limits.memoryBytes),
          "cpu.cfs_period_us": String(cpuPeriodUs),
          "cpu.cfs_quota_us": quota,
          "pids.max": String(limits.pidsMax),
        }
  const writes = folders.flatMap((folder) =>
    Object.entries(files)
      .filter(([file]) => kindOf(join(folder, file)))
      .map(([file, value]): Step => ["write", join(folder, file), value]),
  )
  const deviceFolder = folders.find((folder) => kindOf(join(folder, "devices.deny")))
  return {
    make: [
      ...folders.map((folder): Step => ["mkdir", folder]),
      ...writes,
      ...(deviceFolder === undefined ? [] : deviceSteps(deviceFolder)),
    ],
    join: folders.map((folder) => ["write", join(folder, version === 2 ? "cgroup.procs" : "tasks"), "0"]),
    remove: folders.map((folder) => ["rmdir", folder]),
  }
}

/** As many as the driver allows. */
const allowed = ["1:3", "1:5", "1:7", "1:8", "1:9", "5:0", "5:2", "136:*"]

function deviceSteps(folder: string): readonly Step[] {
  return [
    ["write", join(folder, "devices.deny"), "a"],
    ...allowed.map((device): Step => ["write", join(folder, "devices.allow"), `c ${device} rwm`]),
  ]
}
