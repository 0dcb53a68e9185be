import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { Fault } from "@warren/base/fault.ts"
import { compileSeccomp } from "../seccomp/compile.ts"
import { ociSeccomp } from "../seccomp/oci-seccomp.ts"
import { initCapabilities as capabilities } from "./capabilities.ts"
import { configOf } from "./config-of.ts"
import { tmpfsFor, type SandboxLimits } from "./sandbox-input.ts"
import { someInput } from "./testing.ts"

const config = configOf(someInput())
const mount = (at: string, from = config) => from.mounts.find(({ destination }) => destination === at)

describe("hardening", () => {
  it.each<[what: string, got: unknown, wanted: unknown]>([
    ["no new privileges", config.process.noNewPrivileges, true],
    ["no terminal of the runtime", config.process.terminal, false],
    ["init's own user", config.process.user, { uid: 65533, gid: 65533, umask: 0o022 }],
    ["an empty environment", config.process.env, []],
    ["a working folder that no image can move", config.process.cwd, "/"],
    ["oom: as the runner", config.process.oomScoreAdj, 0],
    ["private propagation", config.linux.rootfsPropagation, "private"],
    ["no table when the filter is compiled", config.linux.seccomp, undefined],
  ])("%s", (_, got, wanted) => expect(got).toEqual(wanted))

  it("starts init as its wire says", () => {
    expect(config.process.args.join(" ")).toBe(
      "/run/warren/init --fd 3 --profile dev --user 1000:1000 --workspace /workspace",
    )
  })

  it("has init pass ports on when there is somewhere to pass them to", () => {
    const forwards = ["3128:/run/warren/egress/proxy.sock"]
    expect(configOf(someInput({ forwards })).process.args.slice(-2)).toEqual(["--forward", ...forwards])
  })

  it("shares the host's network only when that was asked for", () => {
    expect(configOf(someInput({ network: "host" })).linux.namespaces.map(({ type }) => type)).toEqual(
      config.linux.namespaces.map(({ type }) => type).filter((type) => type !== "network"),
    )
  })

  it("has the capabilities of the wire's page and no other", () => {
    const wanted = "CHOWN DAC_OVERRIDE FOWNER FSETID KILL NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID SYS_CHROOT"
    expect(
      capabilities
        .toSorted()
        .map((name) => name.replace("CAP_", ""))
        .join(" "),
    ).toBe(wanted)
    for (const set of Object.values(config.process.capabilities)) expect(set).toEqual(capabilities)
  })

  it.each([
    ["RLIMIT_CORE", 0, 0],
    ["RLIMIT_NOFILE", 1024, 4096],
    ["RLIMIT_NPROC", 272, 272],
    ["RLIMIT_MEMLOCK", 65_536, 65_536],
  ])("%s is %i, at most %i", (type, soft, hard) => expect(config.process.rlimits).toContainEqual({ type, soft, hard }))

  it.each(["pid", "network", "ipc", "uts", "mount", "cgroup"])("a %s namespace of its own", (type) => {
    expect(config.linux.namespaces).toContainEqual({ type })
  })

  it("leaves the user namespace and the groups to the launcher", () => {
    expect(config.linux.namespaces).not.toContainEqual({ type: "user" })
    expect(config.linux).not.toHaveProperty("resources")
  })

  it("mounts in this order and nothing else: no /sys, no cgroups, no mqueue, no binds", () => {
    expect(config.mounts.map(({ destination, type }) => `${destination} ${type}`)).toEqual([
      "/proc proc",
      "/dev tmpfs",
      "/dev/pts devpts",
      "/dev/shm tmpfs",
      "/tmp tmpfs",
    ])
  })

  it.each([
    ["/proc", ["nosuid", "nodev", "noexec"]],
    ["/dev", ["nosuid", "noexec", "mode=755", "size=64k", "nr_inodes=256"]],
    ["/dev/pts", ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "max=64"]],
    ["/dev/shm", ["nosuid", "nodev", "noexec", "mode=1777", "size=33554432", "nr_inodes=2048"]],
    ["/tmp", ["nosuid", "nodev", "mode=1777", "size=67108864", "nr_inodes=16384"]],
  ])("%s has %j", (at, options) => expect(mount(at)?.options).toEqual(expect.arrayContaining(options)))

  it.each(
    (
      "acpi asound kcore keys key-users latency_stats timer_list timer_stats sched_debug scsi config.gz kallsyms kmsg pagetypeinfo " +
      "slabinfo modules interrupts sysrq-trigger cmdline"
    ).split(" "),
  )("/proc/%s is masked", (name) => expect(config.linux.maskedPaths).toContain(`/proc/${name}`))

  it.each(["bus", "fs", "irq", "sys", "sysrq-trigger"])("/proc/%s is read-only", (name) => {
    expect(config.linux.readonlyPaths).toContain(`/proc/${name}`)
  })
})

describe("a read-only root", () => {
  it("has a home in memory, of the user", () => {
    const readOnly = configOf(someInput({ isRootReadOnly: true }))
    expect(readOnly.root).toEqual({ path: "/run/root", readonly: true })
    expect(mount("/home/user", readOnly)?.options).toEqual([
      "nosuid",
      "nodev",
      "mode=700",
      "uid=1000",
      "gid=1000",
      "size=67108864",
      "nr_inodes=16384",
    ])
  })
})

describe("seccomp", () => {
  it.each(["strict", "dev"] as const)("comes compiled for crun (%s)", (profile) => {
    const filter = compileSeccomp(profile, "aarch64").toString("base64")
    expect(configOf(someInput({ profile, arch: "aarch64" })).annotations).toEqual({
      "run.oci.seccomp_bpf_data": filter,
    })
  })

  it("comes as a table for the others", () => {
    const table = configOf(someInput({ seccomp: "table" }))
    expect(table.linux.seccomp).toEqual(ociSeccomp("dev", "x86_64"))
    expect(table.annotations).toEqual({})
  })
})

describe("limits", () => {
  const bad: readonly (readonly [keyof SandboxLimits, number])[] = (
    ["memoryBytes", "pidsMax", "openFilesMax", "tmpBytes", "shmBytes"] as const
  ).flatMap((name) => [0, -1, NaN, Infinity, 4096.5, 2 ** 60].map((value) => [name, value] as const))

  it.each(bad)("%s of %d is refused by name", (name, value) => {
    const act = () => configOf(someInput({}, { [name]: value }))
    expect(act).toThrow(expect.objectContaining({ code: "invalid", message: expect.stringContaining(name) as string }))
  })

  it("are refused when the machine has less", () => {
    expect(() => configOf(someInput({}, { openFilesMax: 16_385 }))).toThrow(/openFilesMax/)
    expect(() => configOf(someInput({}, { memoryBytes: 8193 * 2 ** 20 }))).toThrow(/memoryBytes/)
  })

  it("keep file systems in memory below half of it, the home too", () => {
    const tmpBytes = 120 * 2 ** 20
    expect(() => configOf(someInput({}, { tmpBytes }))).not.toThrow()
    expect(() => configOf(someInput({ isRootReadOnly: true }, { tmpBytes }))).toThrow(/half of the memory/)
  })

  it("have a proposal that always fits", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 8 * 2 ** 20, max: 8192 * 2 ** 20 }),
        fc.boolean(),
        (memoryBytes, isRootReadOnly) => {
          configOf(someInput({ isRootReadOnly }, { memoryBytes, ...tmpfsFor(memoryBytes) }))
        },
      ),
    )
  })

  it.each([
    [-1000, 0],
    [0, 0],
    [200, 200],
    [1000, 1000],
  ])("give init, under a runner of %i, what no command can go below: %i", (oomScoreAdj, wanted) => {
    const machine = { ...someInput().machine, oomScoreAdj }
    expect(configOf(someInput({ machine })).process.oomScoreAdj).toBe(wanted)
  })

  it("ask for no more processes than the machine lets us", () => {
    const machine = { ...someInput().machine, processesMax: 100 }
    expect(configOf(someInput({ machine })).process.rlimits).toContainEqual({
      type: "RLIMIT_NPROC",
      soft: 100,
      hard: 100,
    })
  })
})

describe("what a person types", () => {
  it.each(["", "-a", "A", "a.b", "a\nb", "a\0", "x".repeat(64)])("is no host name: %j", (hostname) => {
    expect(() => configOf(someInput({ hostname }))).toThrow(Fault)
  })

  it.each([0, -1, 65_533, 65_536, 1.5, NaN])("is no user to run commands as: %d", (id) => {
    expect(() => configOf(someInput({ user: { uid: id, gid: 1000 } }))).toThrow(Fault)
    expect(() => configOf(someInput({ user: { uid: 1000, gid: id } }))).toThrow(Fault)
  })

  it.each([
    "",
    "a",
    "/",
    "/a/",
    "/a/../b",
    "/a/./b",
    "/a//b",
    "/a,b",
    "/a:b",
    "/a\\b",
    '/a"b',
    "/a\x1fb",
    `/${"a".repeat(4095)}`,
  ])("is no folder: %j", (folder) => {
    for (const bad of [{ workspace: folder }, { rootPath: folder }])
      expect(() => configOf(someInput(bad))).toThrow(/is not a plain absolute path/)
  })

  it("may leave the folder to init, and have a long one", () => {
    const { workspace: _, ...input } = someInput()
    expect(configOf(input).process.args).not.toContain("--workspace")
    expect(configOf(someInput({ workspace: `/${"a".repeat(4094)}` })).process.args).toContain("--workspace")
  })

  it("cannot add a key, an annotation, a hook or an argument", () => {
    const text = fc.string({ unit: "binary" })
    const property = fc.property(text, text, text, (hostname, workspace, extra) => {
      const input = {
        ...someInput({ hostname, workspace }),
        env: [extra],
        hooks: {},
        annotations: { "run.oci.handler": extra },
      }
      let made
      try {
        made = configOf(input)
      } catch (thrown) {
        expect(thrown).toMatchObject({ code: "invalid" })
        return
      }
      expect(Object.keys(made)).toEqual(["ociVersion", "root", "hostname", "process", "mounts", "linux", "annotations"])
      expect(Object.keys(made.annotations)).toEqual(["run.oci.seccomp_bpf_data"])
      expect(made.process.args).toHaveLength(9)
      expect(made.process.env).toEqual([])
    })
    fc.assert(property, { numRuns: 500 })
  })
})
