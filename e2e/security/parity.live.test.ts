import { readdirSync, readFileSync } from "node:fs"
import { newId } from "@warren/base/id.ts"
import type { Driver, Sandbox } from "@warren/drivers/driver.ts"
import { canPause, canSnapshot } from "@warren/drivers/driver.ts"
import { exec, Execution } from "@warren/drivers/init/exec.ts"
import { Files } from "@warren/drivers/init/files.ts"
import { Shell } from "@warren/drivers/init/shell.ts"
import { initCapabilityMask } from "@warren/drivers/oci/spec/capabilities.ts"
import { pidsIn } from "@warren/drivers/oci/testing/invariants.ts"
import { ociSubject } from "@warren/drivers/oci/testing/subject.ts"
import { defaultLimits, type SandboxId, type SandboxSpec } from "@warren/drivers/sandbox-spec.ts"
import { specOf } from "@warren/drivers/spec-of.ts"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { filterDifferences } from "../probes/filter-table.ts"
import { readPolicy, type PolicyName } from "../probes/policy.ts"
import { parse, Probe, usualLimits, type Finding } from "../probes/probe.ts"
import { agree } from "./agree.ts"

const never = new AbortController().signal
const inside = "/opt/probe"
const isRoot = process.getuid?.() === 0
/** Without root there is no disk limit, and no group unless one was given. */
const limits = { ...defaultLimits, ...(isRoot ? {} : { diskBytes: 0, mayBeUnlimited: true as const }) }

let probe: Probe
beforeAll(async () => {
  probe = await Probe.open()
})
afterAll(() => probe[Symbol.asyncDispose]())

/** One way of running a program in a sandbox. */
type Way = (sandbox: Sandbox, argv: readonly [string, ...string[]]) => Promise<string>

const run: Way = async (sandbox, argv) => (await exec(sandbox, { argv: [...argv] })).stdout.toString()
const asRoot: Way = async (sandbox, argv) => (await exec(sandbox, { argv: [...argv], user: "root" })).stdout.toString()
const onTerminal: Way = async (sandbox, argv) =>
  (await exec(sandbox, { argv: [...argv], pty: { cols: 80, rows: 24 } })).stdout.toString()
const inShell: Way = async (sandbox, argv) => {
  const shell = await Shell.open(sandbox)
  return (await shell.run(argv.map((word) => `'${word}'`).join(" "))).output.toString()
}
const bySudo: Way = (sandbox, argv) => run(sandbox, ["sudo", ...argv])
/** Left behind by a command, and run by whoever inherits it: init. */
const orphaned: Way = (sandbox, argv) =>
  run(sandbox, ["sh", "-c", `(setsid "$@" > /tmp/said 2>&1; : > /tmp/done) & wait; cat /tmp/said`, "sh", ...argv])

const ways: readonly [name: string, profile: SandboxSpec["profile"], way: Way, policy: PolicyName][] = [
  ["exec", "strict", run, "oci-strict"],
  ["a terminal", "strict", onTerminal, "oci-strict"],
  ["a shell", "strict", inShell, "oci-strict"],
  ["what a command left behind", "strict", orphaned, "oci-strict"],
  ["exec", "dev", run, "oci-dev"],
  ["a terminal", "dev", onTerminal, "oci-dev"],
  ["a shell", "dev", inShell, "oci-dev"],
  ["exec as root", "dev", asRoot, "oci-dev-root"],
  ["sudo", "dev", bySudo, "oci-dev-root"],
]

describe.each(["crun", "runc"] as const)("with %s", (runtime) => {
  const subject = ociSubject({ runtime })
  const sandboxes = new Map<SandboxSpec["profile"], Sandbox>()
  const made: SandboxId[] = []
  let driver: Driver

  beforeAll(async () => {
    driver = await subject.open()
    for (const profile of ["strict", "dev"] as const) sandboxes.set(profile, await start({ profile }))
  })
  afterAll(async () => {
    for (const id of made) await driver.destroy(id)
    await driver[Symbol.asyncDispose]()
  })

  async function start(changes: Partial<SandboxSpec>): Promise<Sandbox> {
    const spec = specOf(await subject.image(), { limits, mounts: [probe.mount(inside)], ...changes })
    made.push(spec.id)
    await driver.create(spec, never)
    return driver.start(spec.id, never)
  }

  const find = async (sandbox: Sandbox, way: Way): Promise<readonly Finding[]> =>
    parse(await way(sandbox, [inside, ...probe.words, ...usualLimits]))

  const usual = (): Sandbox => {
    const sandbox = sandboxes.get("strict")
    if (!sandbox) throw new Error("there is no sandbox")
    return sandbox
  }

  it.each(ways)("%s in %s is as shut as its policy says", async (_name, profile, way, policy) => {
    const sandbox = sandboxes.get(profile)
    if (!sandbox) throw new Error(`there is no ${profile} sandbox`)
    agree(await find(sandbox, way), policy)
  })

  it.each(["strict", "dev"] as const)("answers every system call in %s as written down", async (profile) => {
    const sandbox = sandboxes.get(profile)
    if (!sandbox) throw new Error(`there is no ${profile} sandbox`)
    for (const user of profile === "dev" ? ["user", "root"] : ["user"]) {
      const { stdout } = await exec(sandbox, { argv: [inside, "--filter"], user })
      expect(filterDifferences(stdout.toString(), `oci-${profile}`, runtime === "crun" ? "us" : "runtime")).toEqual([])
    }
  })

  it("is as shut after a pause", async ({ skip }) => {
    const sandbox = usual()
    if (!canPause(driver, sandbox)) return skip(driver.abilities.reasons["pause"])
    await sandbox.pause()
    await sandbox.resume()
    agree(await find(sandbox, run), "oci-strict")
  })

  it("is as shut when it begins with a snapshot, of one that runs and of one that has ended", async () => {
    if (!canSnapshot(driver)) throw new Error("this driver takes no snapshots")
    for (const isStopped of [false, true]) {
      const origin = await start({})
      if (isStopped || driver.abilities.reasons["snapshotCost"]) await driver.stop(origin.id)
      const from = newId("snp")
      await driver.snapshot(origin.id, from)
      const clone = await start({ from })
      agree(await find(clone, run), "oci-strict")
      await driver.removeSnapshot(from)
      await driver.destroy(clone.id)
    }
  })

  it("is as shut after a stop, and when another process takes it over", async () => {
    const { id } = usual()
    await driver.stop(id)
    agree(await find(await driver.start(id, never), run), "oci-strict")
    await driver[Symbol.asyncDispose]()
    driver = await subject.open()
    const adopted = new Map<SandboxId, Sandbox>()
    for await (const sandbox of driver.adopt(never)) adopted.set(sandbox.id, sandbox)
    const again = adopted.get(id)
    if (!again) throw new Error("it was not adopted")
    agree(await find(again, run), "oci-strict")
  })

  it("is as shut with a root that cannot be written", async () => {
    const sandbox = await start({ isRootReadOnly: true })
    agree(await find(sandbox, run), "oci-strict")
  })

  it.skipIf(!isRoot)("has no process without a filter, and what handles files is none", async () => {
    const sandbox = usual()
    const changes = await new Files(sandbox).watch("/tmp")
    const watching = changes[Symbol.asyncIterator]()
    const next = watching.next()
    await using _ = await Execution.start(sandbox, { argv: ["sleep", "1000"] })
    const statuses = pidsIn(subject.root, sandbox.id).flatMap((pid) =>
      readdirSync(`/proc/${pid}/task`).map((task) => readFileSync(`/proc/${pid}/task/${task}/status`, "utf8")),
    )
    expect(statuses.length).toBeGreaterThanOrEqual(3)
    for (const status of statuses) {
      expect(status).toMatch(/^Seccomp:\t2$/m)
      expect(status).toMatch(/^NoNewPrivs:\t1$/m)
      for (const set of ["Prm", "Eff", "Bnd"]) {
        const held = BigInt(`0x${new RegExp(`^Cap${set}:\\t(\\w+)$`, "m").exec(status)?.[1]}`)
        expect(held & ~initCapabilityMask).toBe(0n)
      }
      expect(status).toMatch(/^CapInh:\t0+$/m)
      expect(status).toMatch(/^CapAmb:\t0+$/m)
    }
    await exec(sandbox, { argv: ["touch", "/tmp/seen"] })
    await next
    await watching.return?.()
  })
})

/** A door that is shut everywhere proves nothing. */
describe.skipIf(!isRoot)("the attempts", () => {
  it("succeed without a sandbox, all but those that this machine has nothing for", async () => {
    const open = new Set((await probe.outside()).filter(({ verdict }) => verdict === "OPEN").map(({ id }) => id))
    const policy = readPolicy("oci-strict")
    const meaningful = policy.filter(({ id, must }) => must === "SHUT" && open.has(id))
    console.log(`probe: ${policy.length} attempts, ${meaningful.length} of them open outside and shut inside`)
    expect(meaningful.length).toBeGreaterThanOrEqual(150)
  })
})
