import { accessSync, constants, readFileSync } from "node:fs"
import { userInfo } from "node:os"
import { join } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import { makeFolder, read, write, type Cgroups } from "./cgroup.ts"
import { delegated, runnerLeaf, type Delegated } from "./delegated.ts"
import { NoCgroups } from "./none.ts"
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

/**
 * The groups this machine has: v1 where the controllers are there (also beside an idle v2), otherwise v2. An ordinary user has those that were
 * delegated to them (`ownParent`: a path below every hierarchy), or none.
 */
export function openCgroups(parent: string, ownParent?: string): Cgroups {
  if (process.getuid?.() !== 0) return openDelegated(parent, delegatedHere(ownParent))
  const { v1, v2 } = cgroupMounts(readFileSync("/proc/self/mountinfo", "utf8"))
  if (v1.has("memory")) return new CgroupsV1(v1, parent)
  if (v2) return new CgroupsV2(v2, parent)
  throw new Fault("unavailable", "this machine has no cgroups", { hint: "mount cgroup2 at /sys/fs/cgroup" })
}

/** What this process may divide: a group named after its user, unless another was made for it, or the one it is in. */
export function delegatedHere(ownParent = `/${userInfo().username}`): Delegated {
  const mounts = cgroupMounts(readFileSync("/proc/self/mountinfo", "utf8"))
  return delegated({ mounts, self: readFileSync("/proc/self/cgroup", "utf8"), parent: ownParent, canWrite })
}

function openDelegated(parent: string, found: Delegated): Cgroups {
  if ("missing" in found) return new NoCgroups(found.missing)
  try {
    if (found.version === 1) return new CgroupsV1(found.folders, parent)
    makeRoom(found.folder)
    return new CgroupsV2(found.folder, parent)
  } catch (failure) {
    return new NoCgroups(Fault.from(failure).message)
  }
}

/** A group whose controllers are handed on may hold no processes itself: those in it, we among them, go into one below. */
function makeRoom(folder: string): void {
  const leaf = join(folder, runnerLeaf)
  const pids = read(folder, "cgroup.procs").split("\n").filter(Boolean)
  if (pids.length > 0) makeFolder(leaf)
  for (const pid of pids) write(leaf, "cgroup.procs", pid)
}

function canWrite(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}
