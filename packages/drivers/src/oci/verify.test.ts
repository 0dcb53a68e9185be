import { describe, expect, it } from "vitest"
import type { CapabilitySet, Posture } from "../posture.ts"
import { defaultLimits } from "../sandbox-spec.ts"
import { specOf } from "../spec-of.ts"
import { shortfalls, type Expected } from "./verify.ts"

const [idBase, gidBase, capabilitiesMax] = [1_000_000, 2_000_000, 0b1011n]
const spec = specOf({ layers: ["/layer"] })
const expected: Expected = {
  spec,
  idBase,
  gidBase,
  cgroupName: spec.id,
  capabilitiesMax,
  maskedPaths: ["/proc/keys", "/proc/kcore"],
}
const names = ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"]
const sets = ["inheritable", "permitted", "effective", "bounding", "ambient"] as const
const none = "0000000000000000"
const mounts = [
  { at: "/", type: "overlay", options: "rw" },
  { at: "/proc", type: "proc", options: "rw,nosuid,nodev,noexec,relatime" },
  { at: "/dev", type: "tmpfs", options: "rw,nosuid,noexec" },
  { at: "/tmp", type: "tmpfs", options: "rw,nosuid,nodev" },
  { at: "/proc/sys", type: "proc", options: "ro,nosuid" },
  { at: "/proc/keys", type: "tmpfs", options: "ro" },
  { at: "/proc/kcore", type: "tmpfs", options: "ro" },
]

/** As it is measured when everything is in force. */
const posture: Posture = {
  measuredAt: "2026-01-01T00:00:00.000Z",
  seccompMode: 2,
  noNewPrivileges: true,
  capabilities: {
    inheritable: none,
    permitted: "000000000000000b",
    effective: "0000000000000001",
    bounding: "000000000000000b",
    ambient: none,
  },
  uidMap: [{ inside: 0, outside: idBase, count: 65_536 }],
  gidMap: [{ inside: 0, outside: gidBase, count: 65_536 }],
  namespaces: Object.fromEntries(names.map((name) => [name, { id: `${name}:[1]`, isOwn: true }])),
  cgroups: { memory: `/warren/${spec.id}`, pids: `/warren/${spec.id}`, "cpu,cpuacct": `/warren/${spec.id}` },
  limits: { memoryBytes: defaultLimits.memoryBytes, cpus: defaultLimits.cpus, pidsMax: defaultLimits.pidsMax },
  mounts,
  network: { mode: "none", routes: [] },
  degraded: [],
}

const found = (changes: Partial<Posture>, more: Partial<Expected> = {}): string[] =>
  shortfalls({ ...posture, ...changes }, { ...expected, ...more })

const capability = (set: CapabilitySet, digits: string): Partial<Posture> => ({
  capabilities: { ...posture.capabilities, [set]: digits },
})

describe("a sandbox", () => {
  it("in which everything is in force lacks nothing", () => expect(found({})).toEqual([]))

  it.each<[Partial<Posture>, RegExp]>([
    [{ seccompMode: 0 }, /no system call filter/],
    [{ seccompMode: 1 }, /no system call filter/],
    [{ noNewPrivileges: false }, /no-new-privs/],
    [{ network: { mode: "bridge", routes: ["eth0"] } }, /network is "bridge" instead of "none"/],
    [{ limits: { ...posture.limits, memoryBytes: 2 ** 60 } }, /memory limit/],
    [{ limits: { ...posture.limits, cpus: 1.5 } }, /cpu limit/],
    [{ limits: { ...posture.limits, cpus: -0.000_01 } }, /cpu limit/],
    [{ limits: { ...posture.limits, pidsMax: Number.POSITIVE_INFINITY } }, /pids limit/],
  ])("of which %j is measured says so, and nothing else", (changes, message) => {
    const [first = "", ...others] = found(changes)
    expect(first).toMatch(message)
    expect(others).toEqual([])
  })

  it.each(sets)("whose %s capabilities are wider than asked for, or unreadable, says so", (set) => {
    expect(found(capability(set, "0000000000200000"))).toEqual([
      `the ${set} capabilities are wider than asked for (200000)`,
    ])
    expect(found(capability(set, ""))).toEqual([`the ${set} capabilities cannot be read`])
  })

  it.each(["inheritable", "ambient"] as const)("may have no %s capability, not even one that is allowed", (set) => {
    expect(found(capability(set, "0000000000000001"))).toHaveLength(1)
  })

  it.each([
    ["uid", "uidMap", idBase],
    ["gid", "gidMap", gidBase],
  ] as const)("whose %s map is any other says so", (kind, field, base) => {
    const whole = { inside: 0, outside: base, count: 65_536 }
    for (const map of [
      [],
      [{ ...whole, outside: 0 }],
      [{ ...whole, inside: 1 }],
      [{ ...whole, count: 65_537 }],
      [whole, { inside: 65_536, outside: 0, count: 1 }],
    ])
      expect(found({ [field]: map }), JSON.stringify(map)).toEqual([`the ${kind} map is not the one asked for`])
  })

  it("has the same first host gid as uid where nothing else is said", () => {
    const { gidBase: _, ...same } = expected
    expect(shortfalls({ ...posture, gidMap: posture.uidMap }, same)).toEqual([])
    expect(shortfalls(posture, same)).toEqual(["the gid map is not the one asked for"])
  })

  it.each(names)("in the host's %s namespace says so; so does one of which it is not known", (name) => {
    const { [name]: one, ...others } = posture.namespaces
    const wanted = [`the ${name} namespace is the host's`]
    expect(found({ namespaces: { ...others, [name]: { id: one?.id ?? "", isOwn: false } } })).toEqual(wanted)
    expect(found({ namespaces: others })).toEqual(wanted)
  })

  it("shares the host's network, and no other namespace, only where that was asked for", () => {
    const shared = Object.fromEntries(names.map((name) => [name, { id: "", isOwn: false }]))
    const onHost = { spec: { ...spec, network: { mode: "host" as const } } }
    const lacks = found({ namespaces: shared, network: { mode: "host", routes: ["eth0"] } }, onHost)
    expect(lacks).toEqual(names.filter((name) => name !== "net").map((name) => `the ${name} namespace is the host's`))
  })

  it.each(["memory", "pids", "cpu"])("that is not in its %s group says so", (controller) => {
    const wanted = [`it is not in its ${controller} group`]
    const name = Object.keys(posture.cgroups).find((one) => one.startsWith(controller)) ?? ""
    for (const path of ["/", `/warren/${spec.id}/below`, `/warren/x${spec.id}`])
      expect(found({ cgroups: { ...posture.cgroups, [name]: path } }), path).toEqual(wanted)
    const { [name]: _, ...others } = posture.cgroups
    expect(found({ cgroups: others })).toEqual(wanted)
  })

  it("is in one group for everything where there is only one", () => {
    expect(found({ cgroups: { "": `/warren/${spec.id}` } })).toEqual([])
  })

  it("without groups lacks them, unless it was asked to run without", () => {
    const limits = { memoryBytes: 2 ** 60, cpus: 0, pidsMax: 2 ** 22 }
    expect(found({ cgroups: {}, limits })).toHaveLength(6)
    expect(found({ cgroups: {}, limits }, { isLimited: false })).toEqual([])
  })

  it.each(["/proc/keys", "/proc/kcore"])("in which %s is not covered says so", (path) => {
    expect(found({ mounts: mounts.filter(({ at }) => at !== path) })).toEqual([`${path} is not covered`])
  })

  it.each([
    ["/proc", "nosuid"],
    ["/proc", "nodev"],
    ["/proc", "noexec"],
    ["/dev", "nosuid"],
    ["/tmp", "nosuid"],
    ["/tmp", "nodev"],
    ["/proc/sys", "ro"],
  ])("whose %s is mounted without %s, or not at all, says so", (place, option) => {
    const without = (options: string): string => options.replace(option, "relatime")
    const spoiled = mounts.map((one) => (one.at === place ? { ...one, options: without(one.options) } : one))
    expect(found({ mounts: spoiled })).toEqual([`${place} is mounted without ${option}`])
    expect(found({ mounts: mounts.filter(({ at }) => at !== place) })).toEqual([`${place} is not a mount of its own`])
    // The last one covers those before it.
    expect(found({ mounts: [...mounts, ...spoiled.filter(({ at }) => at === place)] })).toHaveLength(1)
  })

  it("whose root can be written says so where it must not be", () => {
    const readOnly = { spec: { ...spec, isRootReadOnly: true } }
    expect(found({}, readOnly)).toEqual(["/ is mounted without ro"])
    const mended = mounts.map((one) => (one.at === "/" ? { ...one, options: "ro" } : one))
    expect(found({ mounts: mended }, readOnly)).toEqual([])
  })
})
