import { createHash } from "node:crypto"
import { existsSync, lstatSync, readFileSync, readlinkSync, writeFileSync } from "node:fs"
import { join, relative } from "node:path"
import { entriesOf, namesIn } from "@warren/base/testing/folder-entries.ts"

/** What of the host a driver could leave changed. Each part is a sorted list of lines: what differs is what is told. */
export type Footprint = Readonly<Record<Part, readonly string[]>>
type Part = "devices" | "mounts" | "cgroups" | "processes" | "namespaces" | "descriptors" | "loops" | "files"

const deviceNodes = ["null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "console", "kmsg"].map(
  (name) => `/dev/${name}`,
)

/**
 * Everything that belongs to the driver of `root`, and the device nodes that belong to everybody. Others run sandboxes on the
 * same machine: what is theirs is not looked at.
 */
export function footprint(root: string, devices: readonly string[] = deviceNodes): Footprint {
  const groups = cgroupsOf(root)
  const processes = processesOf(root, groups)
  return {
    devices: devices.filter((path) => existsSync(path)).map(describeNode),
    mounts: mountsOf(root),
    cgroups: groups,
    processes: processes.map(describeProcess).toSorted(),
    namespaces: namespacesOf(processes),
    descriptors: descriptors(),
    loops: loopsOf(root),
    files: filesBelow(root).toSorted(),
  }
}

/** What is there now and was not, and what was and is not. Empty: nothing was left and nothing is missing. */
export function differences(before: Footprint, after: Footprint): string[] {
  return (Object.keys(before) as Part[]).flatMap((part) => [
    ...without(after[part], before[part]).map((line) => `${part}: + ${line}`),
    ...without(before[part], after[part]).map((line) => `${part}: - ${line}`),
  ])
}

/**
 * The footprint once it stands still. What an earlier test closed may still be on its way out: counted as there before, it would be
 * missing for ever after.
 */
export async function settled(root: string): Promise<Footprint> {
  for (let last = footprint(root), tries = 0; ; tries++) {
    await new Promise((resolve) => setTimeout(resolve, settleMs / 2))
    const now = footprint(root)
    if (differences(last, now).length === 0 || tries === settleTriesMax) return now
    last = now
  }
}

/** The differences that stay. Some ends take the kernel a moment: a volume is written back, a closed socket leaves the table. */
export async function lasting(before: Footprint, root: string): Promise<string[]> {
  for (let tries = 0; ; tries++) {
    const found = differences(before, footprint(root))
    if (found.length === 0 || tries === settleTriesMax) return found
    await new Promise((resolve) => setTimeout(resolve, settleMs))
  }
}

const settleMs = 50
const settleTriesMax = 600

/** Where an ordinary user's groups are, in a test that another started as one. */
const ownParent = process.env["WARREN_TEST_CGROUP_PARENT"] ?? ""

/** The name of the cgroup parent of a driver, as `openOciDriver` makes it. */
export function cgroupParent(root: string): string {
  return join(ownParent, `warren-${createHash("sha256").update(root).digest("hex").slice(0, 8)}`)
}

/** Host pids of everything in the cgroups of a driver, or of one of its sandboxes. */
export function pidsIn(root: string, id = ""): number[] {
  const folders = cgroupsOf(root).filter((folder) => folder.includes(id))
  const pids = folders.flatMap((folder) => (read(join(folder, "cgroup.procs")) ?? "").split("\n").filter(Boolean))
  return [...new Set(pids.map(Number))].toSorted((left, right) => left - right)
}

/** The host pid of a sandbox's init: the one that is 1 inside. */
export function initPid(root: string, id: string): number {
  const found = pidsIn(root, id).find((pid) => /^NSpid:.*\t1$/m.test(read(`/proc/${pid}/status`) ?? ""))
  if (found === undefined) throw new Error(`no init of ${id} is running`)
  return found
}

/** What somebody does to a sandbox who knows nothing of its driver. */
export function freeze(root: string, id: string): void {
  for (const group of cgroupsOf(root).filter((one) => one.endsWith(`/${id}`)))
    for (const [name, value] of [
      ["freezer.state", "FROZEN"],
      ["cgroup.freeze", "1"],
    ] as const)
      if (existsSync(`${group}/${name}`)) writeFileSync(`${group}/${name}`, value)
}

/** The pid of the launcher of a driver; undefined when there is none. */
export function launcherPids(root: string): number[] {
  return allPids().filter((pid) => isLauncher(pid, root))
}

function isLauncher(pid: number, root: string): boolean {
  const words = (read(`/proc/${pid}/cmdline`) ?? "").split("\0")
  return words[0]?.endsWith("warren-launch") === true && words.includes(root)
}

function describeNode(path: string): string {
  const stat = lstatSync(path)
  return `${path} ${stat.mode.toString(8)} ${stat.uid}:${stat.gid} ${stat.rdev}`
}

/** Mounts of ours, and what a start makes in its own namespace, should it show up in the host's. */
function mountsOf(root: string): string[] {
  const isWatched = (line: string): boolean =>
    line.includes(root) || line.split(" ")[4] === "/run" || line.includes(" - overlay ")
  const lines = readFileSync("/proc/self/mountinfo", "utf8").trim().split("\n")
  return lines
    .filter(isWatched)
    .map((line) =>
      line
        .split(" ")
        .slice(3)
        .join(" ")
        .replace(/\/dev\/loop\d+/, "/dev/loop"),
    )
    .toSorted()
}

function cgroupsOf(root: string): string[] {
  const parent = cgroupParent(root)
  const hierarchies = ["", ...namesIn("/sys/fs/cgroup")].map((name) => join("/sys/fs/cgroup", name, parent))
  return hierarchies
    .filter((folder) => existsSync(folder))
    .flatMap(foldersFrom)
    .toSorted()
}

function foldersFrom(folder: string): string[] {
  const below = entriesOf(folder).filter((entry) => entry.isDirectory())
  return [folder, ...below.flatMap((entry) => foldersFrom(join(folder, entry.name)))]
}

function processesOf(root: string, groups: readonly string[]): number[] {
  const inGroups = groups.flatMap((folder) => (read(join(folder, "cgroup.procs")) ?? "").split("\n").filter(Boolean))
  return [...new Set([...inGroups.map(Number), ...launcherPids(root)])]
}

function describeProcess(pid: number): string {
  return (read(`/proc/${pid}/cmdline`) ?? "gone").replaceAll("\0", " ").trim()
}

/** One line for each namespace, by kind: which ones they are changes, how many there are must not. */
function namespacesOf(pids: readonly number[]): string[] {
  const links = pids.flatMap((pid) => ["net", "mnt", "user", "pid"].map((kind) => link(`/proc/${pid}/ns/${kind}`)))
  const distinct = new Set(links.filter((found) => found !== undefined))
  return [...distinct].map(withoutNumber).toSorted()
}

/** By kind: the numbers of sockets and pipes change, how many there are must not. */
function descriptors(): string[] {
  // The descriptor by which the folder itself was read is gone again, and with it its link.
  const targets = namesIn("/proc/self/fd").map((fd) => link(`/proc/self/fd/${fd}`))
  return targets
    .filter((target) => target !== undefined)
    .map(withoutNumber)
    .toSorted()
}

/** `socket:[1234]` is a socket. */
function withoutNumber(target: string): string {
  return target.replace(/:\[\d+\]$/, "")
}

function loopsOf(root: string): string[] {
  return namesIn("/sys/block")
    .filter((name) => name.startsWith("loop"))
    .map((name) => read(`/sys/block/${name}/loop/backing_file`)?.trim() ?? "")
    .filter((file) => file.startsWith(root))
    .toSorted()
}

/** Paths below a folder. The lock's own journal comes and goes with its holder. */
function filesBelow(root: string, folder = root): string[] {
  return entriesOf(folder).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (path.startsWith(join(root, "lock"))) return []
    return [relative(root, path), ...(entry.isDirectory() ? filesBelow(root, path) : [])]
  })
}

function allPids(): number[] {
  return namesIn("/proc").map(Number).filter(Number.isInteger)
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return undefined
  }
}

function link(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

/** What is in `left` more often than in `right`. */
function without(left: readonly string[], right: readonly string[]): string[] {
  const rest = [...right]
  return left.filter((line) => {
    const at = rest.indexOf(line)
    if (at >= 0) rest.splice(at, 1)
    return at < 0
  })
}
