import { readFileSync } from "node:fs"
import { Fault } from "@warren/base/fault.ts"
import type { Cgroups } from "./cgroup.ts"
import { CgroupsV1 } from "./v1.ts"
import { CgroupsV2 } from "./v2.ts"

export interface CgroupMounts {
  /** Where each v1 controller is. */
  readonly v1: ReadonlyMap<string, string>
  readonly v2: string | undefined
}

/** What `/proc/self/mountinfo` says about cgroups. */
export function cgroupMounts(mountinfo: string): CgroupMounts {
  const v1 = new Map<string, string>()
  let v2: string | undefined
  for (const line of mountinfo.split("\n")) {
    const [left = "", right = ""] = line.split(" - ")
    const mountPoint = left.split(" ")[4]
    const [type, , options = ""] = right.split(" ")
    if (!mountPoint) continue
    if (type === "cgroup2") v2 ??= mountPoint
    if (type === "cgroup") for (const controller of options.split(",")) v1.set(controller, mountPoint)
  }
  return { v1, v2 }
}

/** The groups this machine has: v1 where the controllers are there (also beside an idle v2), otherwise v2. */
export function openCgroups(parent: string): Cgroups {
  const { v1, v2 } = cgroupMounts(readFileSync("/proc/self/mountinfo", "utf8"))
  if (v1.has("memory")) return new CgroupsV1(v1, parent)
  if (v2) return new CgroupsV2(v2, parent)
  throw new Fault("unavailable", "this machine has no cgroups", { hint: "mount cgroup2 at /sys/fs/cgroup" })
}
