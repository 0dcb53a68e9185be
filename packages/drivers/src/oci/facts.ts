import { accessSync, constants, existsSync, readFileSync, statSync } from "node:fs"
import { release, userInfo } from "node:os"
import { delimiter, join } from "node:path"
import { cgroupMounts, delegatedHere } from "./cgroup/open.ts"
import { subordinateIds, type Person, type SubordinateIds } from "./subordinate-ids.ts"

/** What there is to know about this machine before a sandbox is made on it. */
export interface Facts {
  readonly user: Person
  /** As `uname -r` says it. */
  readonly kernel: string
  /** Where each program is. */
  readonly programs: Readonly<Record<ProgramName, string | undefined>>
  readonly hasUserNamespaces: boolean
  /** By their names in /proc/sys; undefined: this kernel has no such thing. */
  readonly sysctls: Readonly<Record<SysctlName, number | undefined>>
  /** Whether setuid programs do what they are for: no-new-privs is off, and the bounding set has what newuidmap needs. */
  readonly canRaise: boolean
  /** Programs that have the setuid bit; file capabilities are seen as none. */
  readonly setuid: readonly string[]
  readonly ids: SubordinateIds | undefined
  /** Mounts over parts of /proc: where there are some, the kernel lets nobody mount a new one in a user namespace. */
  readonly coveredProc: readonly string[]
  readonly cgroups: { readonly version: 1 | 2; readonly missing: string | undefined }
  readonly hasSeccomp: boolean
  /** As /proc/filesystems lists them. */
  readonly filesystems: readonly string[]
  readonly hasLoopDevices: boolean
}

export const programNames = ["crun", "newuidmap", "newgidmap", "mkfs.btrfs"] as const
export type ProgramName = (typeof programNames)[number]

export const sysctlNames = [
  "user/max_user_namespaces",
  "kernel/unprivileged_userns_clone",
  "kernel/apparmor_restrict_unprivileged_userns",
] as const
export type SysctlName = (typeof sysctlNames)[number]

const setidBits = (1n << 6n) | (1n << 7n)

export function readFacts(cgroupParent?: string): Facts {
  const { username: name, uid } = userInfo()
  const user = { name, uid }
  const status = read("/proc/self/status")
  const bounding = BigInt(`0x${/^CapBnd:\t([0-9a-f]+)/m.exec(status)?.[1] ?? "0"}`)
  const programs = record(programNames, findProgram)
  return {
    user,
    kernel: release(),
    programs,
    hasUserNamespaces: existsSync("/proc/self/ns/user"),
    sysctls: record(sysctlNames, readSysctl),
    canRaise: /^NoNewPrivs:\t0/m.test(status) && (bounding & setidBits) === setidBits,
    setuid: Object.values(programs).filter((path) => path !== undefined && isSetuid(path)) as string[],
    ids: subordinateIds(read("/etc/subuid"), read("/etc/subgid"), user),
    coveredProc: coveredProc(read("/proc/self/mountinfo")),
    cgroups: readCgroups(uid, cgroupParent),
    hasSeccomp: existsSync("/proc/sys/kernel/seccomp/actions_avail"),
    filesystems: read("/proc/filesystems")
      .split("\n")
      .map((line) => line.split("\t")[1] ?? ""),
    hasLoopDevices: existsSync("/dev/loop-control"),
  }
}

function readCgroups(uid: number, parent: string | undefined): Facts["cgroups"] {
  const { v1, v2 } = cgroupMounts(read("/proc/self/mountinfo"))
  const version = v1.has("memory") ? 1 : 2
  if (uid === 0) return { version, missing: v1.has("memory") || v2 ? undefined : "this machine has no cgroups" }
  const found = delegatedHere(parent)
  return { version, missing: "missing" in found ? found.missing : undefined }
}

/** The one for foreign programs is on a folder that is always empty, and covers nothing. */
export function coveredProc(mountinfo: string): string[] {
  const points = mountinfo.split("\n").map((line) => line.split(" ")[4] ?? "")
  return points.filter((at) => at.startsWith("/proc/") && at !== "/proc/sys/fs/binfmt_misc")
}

function record<K extends string, V>(names: readonly K[], value: (name: K) => V): Record<K, V> {
  return Object.fromEntries(names.map((name) => [name, value(name)])) as Record<K, V>
}

function findProgram(name: string): string | undefined {
  // What root uses is not in everybody's PATH.
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/sbin"]
  return folders.map((folder) => join(folder, name)).find(isExecutable)
}

function readSysctl(name: string): number | undefined {
  const text = read(`/proc/sys/${name}`)
  return text === "" ? undefined : Number(text)
}

function isSetuid(path: string): boolean {
  const { mode, uid } = statSync(path)
  return (mode & 0o4000) !== 0 && uid === 0
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return ""
  }
}
