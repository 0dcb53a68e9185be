import { randomInt } from "node:crypto"
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { isId } from "@warren/base/id.ts"
import { bundleProgram, Program } from "@warren/base/testing/program.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { canSnapshot, type Sandbox } from "../driver.ts"
import type { SandboxId, SnapshotId } from "../sandbox-spec.ts"
import type { OciOptions } from "./driver.ts"
import { Fixture, never, text } from "./testing/fixture.ts"
import { footprint, lasting, launcherPids } from "./testing/invariants.ts"
import { randomFrom } from "./testing/random.ts"
import { programs } from "./testing/subject.ts"

const seed = Number(process.env["WARREN_SEED"] ?? randomInt(2 ** 31))
const kills = Number(process.env["WARREN_FORK_CRASHES"] ?? 12)

interface Told {
  readonly sandboxes: Map<SandboxId, string>
  readonly snapshots: Map<SnapshotId, string>
}

/** A runner that is killed while it takes snapshots and forks: what was acknowledged is whole, and the rest can be taken away. */
describe.each<[string, OciOptions["volume"]]>([
  ["on a volume", {}],
  ["in plain folders", { isPlain: true }],
])("a crash while forking %s", (_, volume) => {
  const fixture = new Fixture({ volume })
  let folder: TempFolder
  let program: string

  beforeAll(async () => {
    folder = await TempFolder.make()
    program = await bundleProgram(new URL("testing/fork-life.ts", import.meta.url), folder)
  })
  afterAll(() => folder[Symbol.asyncDispose]())

  it(`leaves nothing half-made, ${kills} times (seed ${seed})`, { timeout: 600_000 }, async () => {
    const random = randomFrom(seed)
    const before = footprint(fixture.root)
    const steps = new Map<string, number>()
    await fixture.close()
    for (let round = 0; round < kills; round++) {
      const told = await crash(random)
      for (const step of [...told.sandboxes.values(), ...told.snapshots.values()])
        steps.set(step, (steps.get(step) ?? 0) + 1)
      await fixture.open()
      const running: Sandbox[] = []
      for await (const sandbox of fixture.driver.adopt(never)) running.push(sandbox)
      await checkSnapshots(told, `round ${round} of seed ${seed}`)
      await checkSandboxes(told, running, `round ${round} of seed ${seed}`)
      for (const id of told.sandboxes.keys()) await fixture.destroy(id)
      expect(await lasting(before, fixture.root), `after round ${round} of seed ${seed}`).toEqual([])
      await fixture.close()
    }
    await fixture.open()
    console.log(`fork-crash: last words: ${[...steps].map(([step, count]) => `${step} ${count}`).join(", ")}`)
  })

  /** Runs a runner for a while and kills it, often its launcher first. What it said last about each thing. */
  async function crash(random: () => number): Promise<Told> {
    await using runner = new Program(program, [fixture.root, JSON.stringify({ programs, volume })])
    expect(await runner.line()).toBe("ready -")
    await new Promise((resolve) => setTimeout(resolve, random() * 400))
    const kind = random()
    if (kind < 0.4) for (const pid of launcherPids(fixture.root)) tryKill(pid)
    if (kind < 0.2) await new Promise((resolve) => setTimeout(resolve, random() * 20))
    runner.kill()
    const told: Told = { sandboxes: new Map(), snapshots: new Map() }
    for (const line of await runner.rest()) {
      const [step = "", id = ""] = line.split(" ")
      if (step === "failed" && kind >= 0.4) throw new Error(line)
      if (isId("sbx", id)) told.sandboxes.set(id, step)
      if (isId("snp", id)) told.snapshots.set(id, step)
    }
    return told
  }

  /** What was frozen is there and is all that is there; strays can be found and taken away. */
  async function checkSnapshots({ snapshots }: Told, where: string): Promise<void> {
    const { driver } = fixture
    if (!canSnapshot(driver)) throw new Error("there are no snapshots")
    const found = await driver.listSnapshots()
    for (const [id, step] of snapshots) {
      if (step === "frozen") expect(found, `${where}: ${id} was frozen`).toContain(id)
      if (step === "removed") expect(found, `${where}: ${id} was removed`).not.toContain(id)
    }
    expect(found.filter((id) => !snapshots.has(id))).toEqual([])
    expect(readdirSync(join(fixture.root, "volume")).filter((name) => name.includes(".part"))).toEqual([])
    for (const from of found.filter((id) => snapshots.get(id) === "frozen")) {
      await using child = await fixture.use({ from })
      expect(await text(child, "wc -l < /workspace/many; wc -l < /workspace/id"), where).toBe("20000\n1\n")
    }
    for (const id of found) await driver.removeSnapshot(id)
  }

  async function checkSandboxes({ sandboxes }: Told, running: readonly Sandbox[], where: string): Promise<void> {
    for (const [id, step] of sandboxes) {
      const what = `${where}: ${id} was ${step}`
      if (["created", "writing", "wrote"].includes(step)) expect(await fixture.driver.exists(id), what).toBe(true)
      if (step === "destroyed") expect(await fixture.driver.exists(id), what).toBe(false)
      const isRunning = running.some((sandbox) => sandbox.id === id)
      // A sandbox that was not started is not running because its parent was.
      if (step === "created") {
        expect(isRunning, what).toBe(false)
        const child = await fixture.driver.start(id, never)
        expect(await text(child, "wc -l < /workspace/many; test ! -e /workspace/parent && echo first"), what).toBe(
          "20000\nfirst\n",
        )
      }
    }
    for (const sandbox of running) {
      expect(sandboxes.has(sandbox.id), where).toBe(true)
      if (sandboxes.get(sandbox.id) === "wrote")
        expect(await text(sandbox, "cat /workspace/id")).toBe(`${sandbox.id}\n`)
    }
  }
})

function tryKill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL")
  } catch {
    // Gone already.
  }
}
