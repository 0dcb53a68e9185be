import { chmodSync, chownSync, existsSync, lstatSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { errnoOf, Fault } from "@warren/base/fault.ts"
import { groupFoldersOf, type GroupFolders } from "@warren/protocol/launcher/group-folders.ts"
import type { Identity } from "./identity.ts"

/** Only the owner fills it, only the group passes through it, and what is made in it is the group's, too. */
const socketFolderMode = 0o2710

/** The folder of a user's sockets. It lies in memory, so it is made again after each boot. */
export function makeSocketFolder(path: string, owner: Identity, controlGroup: number): void {
  const isFolder = isFolderOf(path, owner.uid)
  if (isFolder === false) rmSync(path, { recursive: true, force: true })
  if (isFolder !== true) mkdirSync(path, { mode: 0o700 })
  // The owner first: changing it takes the mode's setgid bit away.
  chownSync(path, owner.uid, controlGroup)
  chmodSync(path, socketFolderMode)
}

function isFolderOf(path: string, uid: number): boolean | undefined {
  try {
    const found = lstatSync(path)
    return found.isDirectory() && found.uid === uid
  } catch (failure) {
    if (errnoOf(failure) === "ENOENT") return undefined
    throw failure
  }
}

/** Groups that belong to a user, to be divided among sandboxes: what systemd calls delegation. */
export function delegateGroups(owner: Identity): GroupFolders {
  const groups = groupFoldersOf(owner.name)
  if (groups.folders.length === 0) {
    throw new Fault("unavailable", "this machine has no cgroups", { hint: "without them nothing can be limited" })
  }
  for (const folder of groups.folders) {
    mkdirSync(folder, { recursive: true })
    chownSync(folder, owner.uid, owner.gid)
    if (groups.version === 2) delegateV2(folder, owner)
  }
  return groups
}

/** Of version 2 these files and no other are the user's: limits of the group itself stay root's. */
const v2Files = ["cgroup.procs", "cgroup.threads", "cgroup.subtree_control"]

function delegateV2(folder: string, owner: Identity): void {
  writeFileSync(join(folder, "..", "cgroup.subtree_control"), "+cpu +memory +pids")
  for (const name of v2Files) {
    const file = join(folder, name)
    if (existsSync(file)) chownSync(file, owner.uid, owner.gid)
  }
}

/** Of version 2 a process can only divide a group it is in. */
export function joinGroups({ version, folders }: GroupFolders, pid: number): void {
  if (version === 1) return
  for (const folder of folders) writeFileSync(join(folder, "cgroup.procs"), String(pid))
}
