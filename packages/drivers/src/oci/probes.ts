import type { Probe } from "../driver.ts"
import type { Facts, SysctlName } from "./facts.ts"
import { rangeSize } from "./id-ranges.ts"

/** What the `oci` driver needs of a machine, in the order it bites: for root, or for an ordinary user. */
export function probes(facts: Facts): Probe[] {
  const isRoot = facts.user.uid === 0
  const looks = isRoot ? rootLooks : userLooks
  return looks.map((look) => look(facts))
}

/** What the volume has to say once it is open. */
export function volumeProbes(notes: readonly string[]): Probe[] {
  const fix = "see what it says, and remove what is set aside when it is not needed any more"
  return notes.map((note) => wish("volume", false, note, { fix, without: "what was lost stays lost" }))
}

type Look = (facts: Facts) => Probe

const runtime: Look = ({ programs: { crun } }) =>
  probe("runtime", crun !== undefined, crun ?? "crun is not installed", "sudo apt-get install crun")

const userNamespaces: Look = ({ hasUserNamespaces, sysctls }) => {
  const name = "user namespaces"
  if (!hasUserNamespaces) return probe(name, false, "this kernel has none", "boot a kernel with CONFIG_USER_NS=y")
  const isOff = sysctls["user/max_user_namespaces"] === 0
  return probe(
    name,
    !isOff,
    isOff ? "user.max_user_namespaces is 0" : "available",
    setting("user/max_user_namespaces", 15_000),
  )
}

/** Debian's and Ubuntu's own switches: root is not asked. */
const userNamespacesForAll: Look = ({ sysctls }) => {
  const off = switches.find(([name, bad]) => sysctls[name] === bad)
  const detail = off ? `${dotted(off[0])} is ${off[1]}` : "no switch forbids them"
  return probe("user namespaces of ordinary users", !off, detail, off ? setting(off[0], 1 - off[1]) : "")
}

const switches: readonly (readonly [SysctlName, number])[] = [
  ["kernel/unprivileged_userns_clone", 0],
  ["kernel/apparmor_restrict_unprivileged_userns", 1],
]

const mappers: Look = ({ programs: { newuidmap, newgidmap }, setuid, canRaise }) => {
  const name = "newuidmap and newgidmap"
  if (!newuidmap || !newgidmap) return probe(name, false, "not installed", "sudo apt-get install uidmap")
  const powerless = [newuidmap, newgidmap].filter((path) => !setuid.includes(path))
  if (powerless.length > 0) {
    const words = `${powerless.join(" and ")} ${powerless.length > 1 ? "are" : "is"} not setuid root`
    return probe(name, false, words, `sudo chmod u+s ${powerless.join(" ")}`)
  }
  const fix = "start Warren without no-new-privs and with a whole bounding set (systemd: NoNewPrivileges=no)"
  return probe(name, canRaise, canRaise ? newuidmap : "this process may not raise its rights", fix)
}

const subordinate: Look = ({ ids, user }) => {
  const count = ids?.count ?? 0
  const fix = `sudo usermod --add-subuids 1000000-2048575 --add-subgids 1000000-2048575 ${user.name}`
  if (count < rangeSize) {
    return probe("subordinate ids", false, `${user.name} has ${count}, a sandbox needs ${rangeSize}`, fix)
  }
  const slots = Math.floor(count / rangeSize)
  const detail = `${count}: ${slots === 1 ? "for one sandbox" : `for ${slots} sandboxes`}`
  return wish("ids of their own", slots > 1, detail, { fix, without: "sandboxes share their ids" })
}

const proc: Look = ({ coveredProc: [first] }) =>
  probe(
    "a whole /proc",
    first === undefined,
    first === undefined ? "nothing is mounted over it" : `${first} is covered, so no new /proc can be mounted`,
    "run Warren outside of the container, or give that container an unmasked /proc",
  )

/** An overlay in a user namespace, with names of its attributes that a user may set. */
const overlayInside: Look = (facts) => overlay(facts, "5.11")
/** Owners mapped on the layers of an overlay. */
const overlayMapped: Look = (facts) => overlay(facts, "5.19")

function overlay({ kernel, filesystems }: Facts, least: string): Probe {
  if (!isAtLeast(kernel, least)) {
    return probe("overlay", false, `the kernel is ${kernel}`, `boot Linux ${least} or later`)
  }
  const isMet = filesystems.includes("overlay")
  return probe("overlay", isMet, isMet ? "available" : "not loaded", "sudo modprobe overlay")
}

const seccomp: Look = ({ hasSeccomp }) =>
  probe(
    "seccomp",
    hasSeccomp,
    hasSeccomp ? "filters available" : "this kernel has none",
    "boot a kernel with CONFIG_SECCOMP_FILTER=y",
  )

const cgroupsOfRoot: Look = ({ cgroups: { version, missing } }) =>
  probe(
    "cgroups",
    missing === undefined,
    missing ?? `version ${version}`,
    "sudo mount -t cgroup2 cgroup2 /sys/fs/cgroup",
  )

const cgroupsOfUser: Look = ({ cgroups: { version, missing }, user: { name, uid } }) =>
  wish("delegated cgroups", missing === undefined, missing ?? `version ${version}`, {
    fix:
      version === 2
        ? `sudo systemctl set-property user@${uid}.service Delegate=yes, then: systemd-run --user --scope -p Delegate=yes npm start`
        : `for c in cpu cpuacct memory pids freezer; do sudo mkdir -p /sys/fs/cgroup/$c/${name}; sudo chown ${name} /sys/fs/cgroup/$c/${name}; done`,
    without: "only sandboxes that may be without limits can be made, and none can be paused",
  })

const diskOfRoot: Look = ({ programs, filesystems, hasLoopDevices }) => {
  const without = "what a sandbox writes is not limited, and a snapshot is a copy that it must be paused for"
  const lacks: [isMissing: boolean, detail: string, fix: string][] = [
    [programs["mkfs.btrfs"] === undefined, "mkfs.btrfs is not installed", "sudo apt-get install btrfs-progs"],
    [!filesystems.includes("btrfs"), "this kernel has not loaded btrfs", "sudo modprobe btrfs"],
    [!hasLoopDevices, "there are no loop devices", "sudo modprobe loop"],
  ]
  const lack = lacks.find(([isMissing]) => isMissing)
  return wish("disk limits", !lack, lack?.[1] ?? "btrfs", { fix: lack?.[2] ?? "", without })
}

const diskOfUser: Look = () =>
  wish("disk limits", false, "only root can mount a volume or limit what is written", {
    fix: "sudo npm start",
    without: "what a sandbox writes is not limited, and a snapshot is a copy that it must be paused or stopped for",
  })

const owners: Look = () =>
  wish("owners of the image's files", false, "only root can map them", {
    fix: "sudo npm start",
    without: "they look like nobody's, cannot be changed inside, and folders of the host can only be mounted read-only",
  })

const rootLooks: readonly Look[] = [runtime, userNamespaces, overlayMapped, proc, seccomp, cgroupsOfRoot, diskOfRoot]
const userLooks: readonly Look[] = [
  ...[runtime, userNamespaces, userNamespacesForAll, mappers, subordinate, overlayInside, proc, seccomp],
  ...[cgroupsOfUser, diskOfUser, owners],
]

function probe(name: string, isMet: boolean, detail: string, fix: string): Probe {
  return { name, isMet, detail, ...(isMet ? {} : { fix }) }
}

/** Something to be without at a price. */
function wish(name: string, isMet: boolean, detail: string, lack: { fix: string; without: string }): Probe {
  return { name, isMet, detail, ...(isMet ? {} : lack) }
}

function setting(name: SysctlName, value: number): string {
  return `sudo sysctl -w ${dotted(name)}=${value}`
}

function dotted(name: SysctlName): string {
  return name.replace("/", ".")
}

function isAtLeast(kernel: string, least: string): boolean {
  const [major = 0, minor = 0] = kernel.split(/[.-]/).map(Number)
  const [leastMajor = 0, leastMinor = 0] = least.split(".").map(Number)
  return major > leastMajor || (major === leastMajor && minor >= leastMinor)
}
