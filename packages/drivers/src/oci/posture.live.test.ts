import { readdirSync, readFileSync, lstatSync } from "node:fs"
import { join } from "node:path"
import { newId } from "@warren/base/id.ts"
import { describe, expect, it } from "vitest"
import type { Sandbox } from "../driver.ts"
import { exec, Execution } from "../init/exec.ts"
import { Shell } from "../init/shell.ts"
import type { StartRequest } from "./launcher.ts"
import { initCapabilityMask } from "./spec/capabilities.ts"
import { shortfalls } from "./verify.ts"
import { Fixture, never, text } from "./testing/fixture.ts"
import { pidsIn } from "./testing/invariants.ts"

interface LooseConfig {
  annotations: Record<string, string>
  process: { noNewPrivileges: boolean; capabilities: Record<string, string[]>; user: { uid: number; gid: number } }
  mounts: { destination: string; options: string[] }[]
  root: { readonly: boolean }
  linux: { namespaces: { type: string }[]; maskedPaths: string[]; readonlyPaths: string[] }
}

type Spoil = (request: StartRequest) => StartRequest

/** Changes the config that the runtime gets. */
const config =
  (change: (config: LooseConfig) => void): Spoil =>
  (request) => {
    const loose = JSON.parse(request.config) as LooseConfig
    change(loose)
    return { ...request, config: JSON.stringify(loose) }
  }
const withoutNamespace = (type: string): Spoil =>
  config(({ linux }) => void (linux.namespaces = linux.namespaces.filter((namespace) => namespace.type !== type)))
const withoutOption = (at: string, option: string): Spoil =>
  config(({ mounts }) => {
    for (const mount of mounts)
      if (mount.destination === at) mount.options = mount.options.filter((one) => one !== option)
  })
const withoutMount = (at: string): Spoil =>
  config((loose) => void (loose.mounts = loose.mounts.filter(({ destination }) => destination !== at)))
const withoutGroup =
  (controller: string): Spoil =>
  (request) => ({
    ...request,
    cgroups: request.cgroups.filter((folder) => !folder.startsWith(`/sys/fs/cgroup/${controller}/`)),
  })

/** What was asked for is in force, or there is no sandbox. */
describe("posture", () => {
  let spoil: Spoil = (request) => request
  const fixture = new Fixture({ spoil: (request) => spoil(request) })

  async function spoiled<T>(by: Spoil, work: () => Promise<T>): Promise<T> {
    spoil = by
    try {
      return await work()
    } finally {
      spoil = (request) => request
    }
  }

  it.each<[string, Spoil, RegExp]>([
    ["the system call filter", config((loose) => void (loose.annotations = {})), /no system call filter/],
    ["the network", withoutNamespace("network"), /net namespace is the host's/],
    ["the ipc namespace", withoutNamespace("ipc"), /ipc namespace is the host's/],
    ["the host name", withoutNamespace("uts"), /uts namespace is the host's|hostname/],
    ["the cgroup namespace", withoutNamespace("cgroup"), /cgroup namespace is the host's/],
    ["the memory group", withoutGroup("memory"), /not in its memory group/],
    ["the pids group", withoutGroup("pids"), /not in its pids group/],
    ["the cpu group", withoutGroup("cpu"), /not in its cpu group/],
    ["noexec of /proc", withoutOption("/proc", "noexec"), /\/proc is mounted without noexec/],
    ["nosuid of /tmp", withoutOption("/tmp", "nosuid"), /\/tmp is mounted without nosuid/],
    ["/tmp", withoutMount("/tmp"), /\/tmp is not a mount of its own/],
    [
      "a read-only /proc/sys",
      config(({ linux }) => void (linux.readonlyPaths = [])),
      /\/proc\/sys is not a mount of its own/,
    ],
    ["the masks", config(({ linux }) => void (linux.maskedPaths = [])), /\/proc\/keys is not covered/],
    [
      "the range of owners",
      (request) => ({ ...request, map: { ...request.map, base: request.map.base + 65_536 } }),
      /map is not the one asked for/,
    ],
  ])("refuses a sandbox without %s, says so, and leaves nothing of it", async (_, by, message) => {
    await fixture.leavesNothing(async () => {
      const id = await fixture.create()
      await spoiled(by, async () => {
        const thrown = await fixture.driver.start(id, never).catch((failure: unknown) => failure)
        expect(thrown).toMatchObject({ code: "unavailable", message: expect.stringMatching(message) as string })
      })
      expect(pidsIn(fixture.root, id)).toEqual([])
      // It was the start that was spoiled, not the sandbox.
      expect(await text(await fixture.driver.start(id, never), "echo alive")).toBe("alive\n")
      await fixture.destroy(id)
    })
  })

  it.each<[string, Spoil]>([
    ["its own processes", withoutNamespace("pid")],
    ["/proc", withoutMount("/proc")],
    ["/dev", withoutMount("/dev")],
    ["a config that makes sense", (request) => ({ ...request, config: "{" })],
    ["a runtime that works", (request) => ({ ...request, runtime: ["/usr/bin/false"] })],
    ["a runtime at all", (request) => ({ ...request, runtime: ["/no/such"] })],
    ["a group that exists", (request) => ({ ...request, cgroups: ["/sys/fs/cgroup/pids/no/such"] })],
    ["a program as init", config((loose) => void Object.assign(loose.process, { args: ["/bin/true"] }))],
  ])("refuses a sandbox without %s, and leaves nothing of it", async (_, by) => {
    await fixture.leavesNothing(async () => {
      const id = await fixture.create()
      await spoiled(by, async () => {
        const thrown = await fixture.driver.start(id, never).catch((failure: unknown) => failure)
        expect(thrown).toMatchObject({
          name: "Fault",
          code: expect.stringMatching(/^(unavailable|invalid|not_found)$/) as string,
        })
      })
      expect(pidsIn(fixture.root, id)).toEqual([])
      await fixture.destroy(id)
    })
  })

  it("refuses a root that can be written when it must not", async () => {
    await fixture.leavesNothing(async () => {
      const id = await fixture.create({ isRootReadOnly: true })
      await spoiled(
        config(({ root }) => void (root.readonly = false)),
        () =>
          expect(fixture.driver.start(id, never)).rejects.toMatchObject({
            code: "unavailable",
            message: expect.stringMatching(/\/ is mounted without ro/) as string,
          }),
      )
      await fixture.destroy(id)
    })
  })

  it("holds also where init itself makes up for the config: no-new-privs and capabilities", async () => {
    const usual = await (await fixture.start()).posture()
    const id = await fixture.create()
    const sandbox = await spoiled(
      config(({ process }) => {
        process.noNewPrivileges = false
        for (const set of Object.values(process.capabilities)) set.push("CAP_SYS_ADMIN")
      }),
      () => fixture.driver.start(id, never),
    )
    const { noNewPrivileges, capabilities } = await sandbox.posture()
    expect(noNewPrivileges).toBe(true)
    expect(capabilities).toEqual(usual.capabilities)
  })

  it("finds wanting what it measures, field by field", async () => {
    const sandbox = await fixture.start()
    const posture = await sandbox.posture()
    const spec = fixture.spec({ id: sandbox.id })
    const expected = {
      spec,
      idBase: posture.uidMap[0]?.outside ?? 0,
      cgroupName: sandbox.id,
      capabilitiesMax: initCapabilityMask,
      maskedPaths: [],
    }
    expect(shortfalls(posture, expected)).toEqual([])
    const wide = { ...posture.capabilities, bounding: "000001ffffffffff" }
    const spoils: [Partial<typeof posture>, RegExp][] = [
      [{ seccompMode: 0 }, /system call filter/],
      [{ noNewPrivileges: false }, /no-new-privs/],
      [{ capabilities: wide }, /bounding capabilities are wider/],
      [{ capabilities: { ...wide, effective: wide.bounding } }, /effective capabilities are wider/],
      [{ capabilities: { ...posture.capabilities, ambient: "0000000000000001" } }, /ambient capabilities/],
      [{ capabilities: { ...posture.capabilities, permitted: "" } }, /permitted capabilities cannot be read/],
      [{ uidMap: [{ inside: 0, outside: 0, count: 65_536 }] }, /uid map/],
      [{ gidMap: [...posture.gidMap, { inside: 65_536, outside: 0, count: 1 }] }, /gid map/],
      [{ limits: { ...posture.limits, memoryBytes: 2 ** 60 } }, /memory limit/],
      [{ limits: { ...posture.limits, cpus: -0.000_01 } }, /cpu limit/],
      [{ limits: { ...posture.limits, pidsMax: Number.POSITIVE_INFINITY } }, /pids limit/],
      [{ mounts: [] }, /\/proc is not a mount of its own/],
      [{ namespaces: {} }, /namespace/],
      [{ network: { mode: "bridge", routes: ["eth0"] } }, /network is "bridge" instead of "none"/],
      [{ cgroups: {} }, /memory group/],
    ]
    for (const [spoil, message] of spoils) {
      expect(shortfalls({ ...posture, ...spoil }, expected).join("; "), JSON.stringify(spoil)).toMatch(message)
    }
  })
})

describe("secrets", () => {
  const fixture = new Fixture()

  /** Everywhere on the host where somebody could come across a word. */
  function placesWith(canary: string): string[] {
    const commands = readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map((pid) => `/proc/${pid}/cmdline`)
    const files = filesBelow(fixture.root)
    return [...commands, ...files].filter((path) => contains(path, canary))
  }

  it("given to a command appear in no command line, no file of ours and no log", async () => {
    const canary = newId("sbx").slice(4)
    const sandbox: Sandbox = await fixture.start()
    const env = { SECRET: canary }
    await using running = await Execution.start(sandbox, {
      argv: ["sh", "-c", "echo $SECRET; exec sleep 8000"],
      env,
      stdin: true,
    })
    expect((await running.output().next()).value?.bytes.toString()).toBe(`${canary}\n`)
    const shell = await Shell.open(sandbox, { env })
    expect((await shell.run("echo $SECRET")).output.toString()).toBe(`${canary}\n`)
    expect(placesWith(canary)).toEqual([])
    const failure: unknown = await exec(sandbox, { argv: ["/no/such", "x"], env }).catch((thrown: unknown) => thrown)
    expect(JSON.stringify(failure)).not.toContain(canary)
    await fixture.driver.stop(sandbox.id)
    expect(placesWith(canary)).toEqual([])
    expect(fixture.logged.join("")).not.toContain(canary)
    await fixture.destroy(sandbox.id)
  })

  it("would be found: one that a command writes down is", async () => {
    const canary = newId("sbx").slice(4)
    const sandbox = await fixture.start()
    await text(sandbox, "echo $SECRET > /workspace/leak", { env: { SECRET: canary } })
    await using _ = await Execution.start(sandbox, { argv: ["sh", "-c", "sleep 9000; :", canary] })
    await expect.poll(() => placesWith(canary).length).toBe(2)
    await fixture.destroy(sandbox.id)
  })

  function filesBelow(folder: string): string[] {
    return readdirSync(folder).flatMap((name) => {
      const path = join(folder, name)
      const stat = lstatSync(path)
      if (stat.isDirectory()) return name === "host-image" ? [] : filesBelow(path)
      // The volume's own file is looked at from within.
      return stat.isFile() && stat.size < 1e9 ? [path] : []
    })
  }
})

function contains(path: string, canary: string): boolean {
  try {
    return readFileSync(path).includes(canary)
  } catch {
    return false
  }
}
