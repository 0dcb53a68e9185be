import { describe, expect, it } from "vitest"
import type { Facts } from "./facts.ts"
import { coveredProc } from "./facts.ts"
import { probes } from "./probes.ts"

const ideal: Facts = {
  user: { name: "anna", uid: 1001 },
  kernel: "6.1.0-18-amd64",
  programs: {
    crun: "/usr/bin/crun",
    newuidmap: "/usr/bin/newuidmap",
    newgidmap: "/usr/bin/newgidmap",
    "mkfs.btrfs": "/usr/sbin/mkfs.btrfs",
  },
  hasUserNamespaces: true,
  sysctls: {
    "user/max_user_namespaces": 10_000,
    "kernel/unprivileged_userns_clone": 1,
    "kernel/apparmor_restrict_unprivileged_userns": 0,
  },
  canRaise: true,
  setuid: ["/usr/bin/newuidmap", "/usr/bin/newgidmap"],
  ids: { uid: 100_000, gid: 100_000, count: 1_048_576 },
  coveredProc: [],
  cgroups: { version: 2, missing: undefined },
  hasSeccomp: true,
  filesystems: ["ext4", "overlay", "btrfs"],
  hasLoopDevices: true,
}
const root = { name: "root", uid: 0 }
const unmet = (facts: Partial<Facts>) => probes({ ...ideal, ...facts }).filter(({ isMet }) => !isMet)

describe("for an ordinary user", () => {
  it("lists what bites first, first", () => {
    expect(probes(ideal).map(({ name }) => name)).toEqual([
      "runtime",
      "user namespaces",
      "user namespaces of ordinary users",
      "newuidmap and newgidmap",
      "ids of their own",
      "overlay",
      "a whole /proc",
      "seccomp",
      "delegated cgroups",
      "disk limits",
      "owners of the image's files",
    ])
  })

  it("names only what nobody but root can have, when all else is there", () => {
    expect(unmet({}).map(({ name }) => name)).toEqual(["disk limits", "owners of the image's files"])
    expect(unmet({}).every(({ without }) => without !== undefined)).toBe(true)
  })

  it.each<[string, Partial<Facts>, string, RegExp]>([
    ["crun", { programs: { ...ideal.programs, crun: undefined } }, "runtime", /apt-get install crun/],
    ["namespaces", { hasUserNamespaces: false }, "user namespaces", /CONFIG_USER_NS/],
    [
      "room for namespaces",
      { sysctls: { ...ideal.sysctls, "user/max_user_namespaces": 0 } },
      "user namespaces",
      /sysctl -w user\.max_user_namespaces=15000/,
    ],
    [
      "Debian's switch",
      { sysctls: { ...ideal.sysctls, "kernel/unprivileged_userns_clone": 0 } },
      "user namespaces of ordinary users",
      /unprivileged_userns_clone=1$/,
    ],
    [
      "Ubuntu's switch",
      { sysctls: { ...ideal.sysctls, "kernel/apparmor_restrict_unprivileged_userns": 1 } },
      "user namespaces of ordinary users",
      /apparmor_restrict_unprivileged_userns=0$/,
    ],
    ["uidmap", { programs: { ...ideal.programs, newgidmap: undefined } }, "newuidmap and newgidmap", /install uidmap/],
    ["setuid", { setuid: ["/usr/bin/newuidmap"] }, "newuidmap and newgidmap", /chmod u\+s \/usr\/bin\/newgidmap$/],
    ["rights", { canRaise: false }, "newuidmap and newgidmap", /NoNewPrivileges=no/],
    ["ids", { ids: undefined }, "subordinate ids", /usermod --add-subuids .* anna$/],
    ["a new kernel", { kernel: "5.10.0-28-amd64" }, "overlay", /5\.11/],
    ["overlay", { filesystems: [] }, "overlay", /modprobe overlay/],
    ["a whole /proc", { coveredProc: ["/proc/kcore"] }, "a whole /proc", /container/],
    ["seccomp", { hasSeccomp: false }, "seccomp", /CONFIG_SECCOMP_FILTER/],
  ])("without %s says what to do", (_, facts, name, fix) => {
    expect(unmet(facts)[0]).toMatchObject({ name, fix: expect.stringMatching(fix) as string })
    expect(unmet(facts)[0]?.without).toBeUndefined()
  })

  it("says what it costs to have ids for one, or no groups", () => {
    const few = { uid: 100_000, gid: 100_000, count: 65_536 }
    expect(unmet({ ids: few })[0]).toMatchObject({ name: "ids of their own", without: "sandboxes share their ids" })
    const none = { missing: "no memory cgroup was delegated to this user" }
    expect(unmet({ cgroups: { version: 1, ...none } })[0]).toMatchObject({
      fix: expect.stringContaining("chown anna") as string,
    })
    expect(unmet({ cgroups: { version: 2, ...none } })[0]).toMatchObject({
      fix: expect.stringContaining("user@1001") as string,
    })
  })
})

describe("for root", () => {
  it("needs no mapping programs and no ids, and has everything", () => {
    const programs = { ...ideal.programs, newuidmap: undefined, newgidmap: undefined }
    expect(unmet({ user: root, programs, ids: undefined, canRaise: false })).toEqual([])
  })

  it.each<[string, Partial<Facts>, RegExp]>([
    ["mkfs.btrfs", { programs: { ...ideal.programs, "mkfs.btrfs": undefined } }, /btrfs-progs/],
    ["btrfs", { filesystems: ["overlay"] }, /modprobe btrfs/],
    ["loop devices", { hasLoopDevices: false }, /modprobe loop/],
    ["mapped owners", { kernel: "5.15.0" }, /5\.19/],
    ["cgroups", { cgroups: { version: 2, missing: "this machine has no cgroups" } }, /mount -t cgroup2/],
  ])("without %s says what to do", (_, facts, fix) => {
    expect(unmet({ user: root, ...facts })).toMatchObject([{ fix: expect.stringMatching(fix) as string }])
  })
})

it("sees what covers /proc", () => {
  const line = (at: string) => `22 27 0:21 / ${at} rw - proc proc rw`
  expect(coveredProc([line("/proc"), line("/proc/sys/fs/binfmt_misc"), line("/proc/kcore")].join("\n"))).toEqual([
    "/proc/kcore",
  ])
})
