import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { lstatSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { entriesOf, namesIn } from "@warren/base/testing/folder-entries.ts"

/** What of this machine tests could change for everybody on it: each part a sorted list of lines. */
export type HostState = Readonly<Record<Part, readonly string[]>>
type Part =
  | Solid
  | "mounts"
  | "cgroups"
  | "namespaces"
  | "links"
  | "rules"
  | "loops"
  | "listeners"
  | "processes"
  | "queues"
/** What nobody changes in passing: tests that run side by side can each be held to it. */
type Solid = "devices" | "sysctls" | "accounts"

export interface Places {
  readonly devices: string
  readonly sysctls: string
  readonly accounts: string
}

const usual: Places = { devices: "/dev", sysctls: "/proc/sys", accounts: "/etc" }

/** Counters, and what belongs to network devices that come and go. */
const volatile =
  /(?:^|\/)(?:random\/|fs\/(?:dentry-state|file-nr|inode-nr|inode-state|aio-nr|quota\/)|kernel\/(?:ns_last_pid|perf_event_max_sample_rate|tainted|hung_task_\w+|\w+_count|pty\/nr|sched_domain)|debug\/|net\/ipv[46]\/(?:conf|neigh)\/|net\/mptcp\/|net\/netfilter\/|vm\/stat_refresh|vm\/compact_memory)/
/** In which accounts are; who makes one for a test takes it away again. */
const accountFiles = ["passwd", "group", "shadow", "subuid", "subgid", "hosts", "resolv.conf", "nsswitch.conf"]
const depthMax = 8

/** Owners, modes and numbers of device nodes; values of the kernel's settings. Terminals come and go. */
export function solidState(places: Places = usual): Pick<HostState, "devices" | "sysctls"> {
  return {
    devices: filesBelow(places.devices, /\/(?:pts|shm|mqueue|hugepages|fd)$|\/loop\d+|\/tty$/).map(describeNode),
    sysctls: filesBelow(places.sysctls)
      .map((path) => path.slice(places.sysctls.length + 1))
      .filter((name) => !volatile.test(name))
      .map((name) => `${name}=${read(join(places.sysctls, name)).trim()}`),
  }
}

export function hostState(places: Places = usual): HostState {
  return {
    ...solidState(places),
    accounts: accountFiles.map((name) => `${name} ${digest(read(join(places.accounts, name)))}`),
    mounts: lines(read("/proc/self/mountinfo")).map((line) => line.split(" ").slice(3, 6).join(" ")),
    cgroups: namesIn("/sys/fs/cgroup").flatMap((hierarchy) => ours(join("/sys/fs/cgroup", hierarchy))),
    namespaces: namesIn("/run/netns"),
    links: namesIn("/sys/class/net"),
    rules: lines(output("nft", "list", "ruleset")).map((line) =>
      line.replace(/counter packets \d+ bytes \d+/, "counter"),
    ),
    loops: namesIn("/sys/block")
      .map((name) => read(`/sys/block/${name}/loop/backing_file`).trim())
      .filter(Boolean),
    listeners: [...listening("tcp"), ...listening("tcp6")],
    processes: namesIn("/proc").flatMap(markedProcess),
    queues: ["msg", "sem", "shm"].flatMap((kind) =>
      lines(read(`/proc/sysvipc/${kind}`))
        .slice(1)
        .map((line) => `${kind} ${line.trim().split(/\s+/, 2).join(" ")}`),
    ),
  }
}

/** What is there now and was not, and what was and is not. */
export function changes<P extends Part>(before: Pick<HostState, P>, after: Pick<HostState, P>): string[] {
  const parts = Object.keys(before) as P[]
  return parts.flatMap((part) => {
    const was = new Set(before[part])
    const is = new Set(after[part])
    const gone = [...was].filter((line) => !is.has(line))
    const come = [...is].filter((line) => !was.has(line))
    // A module that is loaded brings settings of its own; a setting that was there before must be what it was.
    const kept = part === "sysctls" ? come.filter((line) => gone.some((other) => keyOf(other) === keyOf(line))) : come
    return [...kept.map((line) => `${part}: + ${line}`), ...gone.map((line) => `${part}: - ${line}`)]
  })
}

/** The changes that stay: some ends take the kernel, or a keeper that notices its parent's, a moment. */
export async function lastingChanges(before: HostState, waitMs = 20_000): Promise<string[]> {
  const until = Date.now() + waitMs
  for (;;) {
    const found = changes(before, hostState())
    if (!found.some(isLeft) || Date.now() > until) return found
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
}

/** Of these, the ones that are no leftover but damage. */
export function isDamage(change: string): boolean {
  return /^(?:devices|sysctls|accounts):/.test(change)
}

/** What is gone was somebody else's to take away; a node or an account that is gone was everybody's. */
export function isLeft(change: string): boolean {
  return isDamage(change) || change.includes(": + ")
}

function keyOf(line: string): string {
  return line.slice(0, line.indexOf("="))
}

function describeNode(path: string): string {
  const { mode, uid, gid, rdev } = lstatSync(path)
  return `${path} ${mode.toString(8)} ${uid}:${gid} ${rdev}`
}

/** Files below a folder, without what `skips` fits. What vanishes meanwhile was not there. */
function filesBelow(folder: string, skips?: RegExp, depth = 0): string[] {
  if (depth > depthMax) return []
  return entriesOf(folder).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (skips?.test(path)) return []
    return entry.isDirectory() ? filesBelow(path, skips, depth + 1) : [path]
  })
}

function ours(folder: string): string[] {
  return namesIn(folder)
    .filter((name) => name.startsWith("warren-"))
    .map((name) => join(folder, name))
}

/** Ports that are listened on; those of others come and go as they like, so only how many there are of each. */
function listening(file: string): string[] {
  const rows = lines(read(`/proc/net/${file}`)).slice(1)
  return rows
    .map((row) => row.trim().split(/\s+/))
    .filter((fields) => fields[3] === "0A")
    .map((fields) => `${file} ${fields[1]}`)
}

const marks =
  /^(?:sh -c .* )?\S*warren-(?:launch|confine|init|probe)\b|^\S*node \S*\/(?:runner|control|launcher|supervisor)\.js\b/
const commandCharsMax = 200

/** Programs of ours: whatever was built into `dist`, and what runs from it. */
function markedProcess(pid: string): string[] {
  if (!/^\d+$/.test(pid)) return []
  const command = read(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim()
  return marks.test(command) ? [command.slice(0, commandCharsMax)] : []
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16)
}

function output(program: string, ...args: string[]): string {
  try {
    return execFileSync(program, args, { stdio: ["ignore", "pipe", "ignore"] }).toString()
  } catch {
    return ""
  }
}

function lines(text: string): string[] {
  return text.split("\n").filter((line) => line !== "")
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return ""
  }
}
