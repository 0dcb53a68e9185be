import { spawn } from "node:child_process"
import { randomInt } from "node:crypto"
import { once } from "node:events"
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { bundleProgram, Program } from "@warren/base/testing/program.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Sandbox } from "../driver.ts"
import { exec, Execution } from "../init/exec.ts"
import type { SandboxId } from "../sandbox-spec.ts"
import { startTicksOf } from "./process.ts"
import { Fixture, never, text } from "./testing/fixture.ts"
import { cgroupParent, footprint, initPid, lasting, launcherPids, pidsIn } from "./testing/invariants.ts"
import { randomFrom } from "./testing/random.ts"
import { programs } from "./testing/subject.ts"

const kills = Number(process.env["WARREN_CRASHES"] ?? 60)
const seed = Number(process.env["WARREN_SEED"] ?? randomInt(2 ** 31))

/** A runner, its launcher, its runtime or an init that is killed at any moment: what was acknowledged is kept, the rest goes. */
describe("a crash", () => {
  const fixture = new Fixture()
  let folder: TempFolder
  let program: string

  beforeAll(async () => {
    folder = await TempFolder.make()
    program = await bundleProgram(new URL("testing/life.ts", import.meta.url), folder)
  })
  afterAll(() => folder[Symbol.asyncDispose]())

  const adopted = async (): Promise<Sandbox[]> => {
    const found: Sandbox[] = []
    for await (const sandbox of fixture.driver.adopt(never)) found.push(sandbox)
    return found
  }

  it(
    `of the runner loses nothing that was acknowledged, ${kills} times (seed ${seed})`,
    { timeout: 900_000 },
    async () => {
      const random = randomFrom(seed)
      const before = footprint(fixture.root)
      const seen = { adopted: 0, removed: 0, launchersKilled: 0, steps: new Map<string, number>() }
      await fixture.close()
      for (let round = 0; round < kills; round++) {
        const told = await crash(random, seen)
        await fixture.open()
        const running = await adopted()
        const ids = new Set(running.map(({ id }) => id))
        for (const [id, step] of told) {
          const where = `round ${round} of seed ${seed}: ${id} was ${step}`
          seen.steps.set(step, (seen.steps.get(step) ?? 0) + 1)
          if (["started", "wrote"].includes(step)) expect(ids.has(id), `${where}, not adopted`).toBe(true)
          if (["creating", "created", "stopped", "destroyed"].includes(step)) expect(ids.has(id), where).toBe(false)
          if (["created", "starting", "started", "wrote", "stopping", "stopped"].includes(step)) {
            expect(await fixture.driver.exists(id), `${where}, and is gone`).toBe(true)
          }
          if (step === "destroyed") expect(await fixture.driver.exists(id), where).toBe(false)
          if (!ids.has(id)) expect(pidsIn(fixture.root, id), where).toEqual([])
        }
        for (const sandbox of running) {
          expect(await text(sandbox, "cat /workspace/id 2>/dev/null; echo alive")).toMatch(/alive\n$/)
          if (told.get(sandbox.id) === "wrote") expect(await text(sandbox, "cat /workspace/id")).toBe(`${sandbox.id}\n`)
        }
        seen.adopted += running.length
        // What was stopped can be started again.
        const stopped = [...told].find(([, step]) => step === "stopped")?.[0]
        if (stopped)
          expect(await text(await fixture.driver.start(stopped, never), "cat /workspace/id")).toBe(`${stopped}\n`)
        for (const id of told.keys()) await fixture.destroy(id)
        seen.removed += told.size
        expect(await lasting(before, fixture.root), `after round ${round} of seed ${seed}`).toEqual([])
        await fixture.close()
      }
      await fixture.open()
      const steps = [...seen.steps].map(([step, count]) => `${step} ${count}`).join(", ")
      console.log(
        `crash: ${kills} kills, seed ${seed}, ${seen.launchersKilled} with the launcher, ${seen.adopted} adopted; last words: ${steps}`,
      )
      expect(seen.adopted).toBeGreaterThan(0)
    },
  )

  /** Runs a runner for a while and kills it. What it said last about each sandbox. */
  async function crash(random: () => number, seen: { launchersKilled: number }): Promise<Map<SandboxId, string>> {
    await using runner = new Program(program, [fixture.root, JSON.stringify(programs)])
    expect(await runner.line()).toBe("ready -")
    await new Promise((resolve) => setTimeout(resolve, random() * 300))
    const order = random()
    if (order < 0.5) {
      seen.launchersKilled++
      // Its forks bear its name until they are something else, and may be gone by now.
      for (const pid of launcherPids(fixture.root)) tryKill(pid)
      if (order < 0.25) await new Promise((resolve) => setTimeout(resolve, random() * 20))
    }
    runner.kill()
    const told = new Map<SandboxId, string>()
    for (const line of await runner.rest()) {
      const [step = "", id = ""] = line.split(" ")
      if (step !== "failed") told.set(id as SandboxId, step)
      else if (order >= 0.5) throw new Error(line)
    }
    return told
  }

  it("of a runner that had paused a sandbox leaves one that works", async () => {
    const sandbox = await fixture.start()
    await (sandbox as Sandbox & { pause(): Promise<void> }).pause()
    await fixture.close()
    await fixture.open()
    const again = (await adopted()).find(({ id }) => id === sandbox.id)
    expect(again && (await text(again, "echo alive"))).toBe("alive\n")
    await fixture.destroy(sandbox.id)
  })

  it("of init is noticed, and what is left can be stopped, started and destroyed", async () => {
    await fixture.leavesNothing(async () => {
      const sandbox = await fixture.start()
      await text(sandbox, "echo kept > /workspace/note")
      const running = await Execution.start(sandbox, { argv: ["sleep", "6000"] })
      process.kill(initPid(fixture.root, sandbox.id), "SIGKILL")
      await sandbox.ended
      await expect(running.ended()).rejects.toMatchObject({ code: "unavailable" })
      await expect(exec(sandbox, { argv: ["true"] })).rejects.toMatchObject({ code: "unavailable" })
      await expect(sandbox.stats()).rejects.toMatchObject({ code: "unavailable" })
      await expect(sandbox.posture()).rejects.toMatchObject({ code: "unavailable" })
      await fixture.driver.stop(sandbox.id)
      expect(pidsIn(fixture.root, sandbox.id)).toEqual([])
      const again = await fixture.driver.start(sandbox.id, never)
      expect(await text(again, "cat /workspace/note")).toBe("kept\n")
      process.kill(initPid(fixture.root, sandbox.id), "SIGKILL")
      await again.ended
      await fixture.destroy(sandbox.id)
    })
  })

  it("of init while nobody looked is noticed when it is looked for", async () => {
    const sandbox = await fixture.start()
    const pid = initPid(fixture.root, sandbox.id)
    await fixture.close()
    process.kill(pid, "SIGKILL")
    await fixture.open()
    expect((await adopted()).map(({ id }) => id)).not.toContain(sandbox.id)
    expect(await fixture.driver.exists(sandbox.id)).toBe(true)
    expect(await text(await fixture.driver.start(sandbox.id, never), "echo again")).toBe("again\n")
    await fixture.destroy(sandbox.id)
  })

  it("of init that does not answer is not waited for for ever", async () => {
    const sandbox = await fixture.start()
    const pid = initPid(fixture.root, sandbox.id)
    await fixture.close()
    process.kill(pid, "SIGSTOP")
    await fixture.open()
    expect((await adopted()).map(({ id }) => id)).not.toContain(sandbox.id)
    await fixture.leavesNothing(async () => undefined)
    await fixture.destroy(sandbox.id)
    expect(pidsIn(fixture.root, sandbox.id)).toEqual([])
  })

  it("of the runtime in the middle of a start is a fault, and leaves nothing", { timeout: 120_000 }, async () => {
    const isRuntime = (pid: number): boolean => cmdline(pid).includes("--cgroup-manager=disabled")
    let hits = 0
    await fixture.leavesNothing(async () => {
      for (let round = 0; round < 40; round++) {
        const id = await fixture.create()
        const state = { over: false }
        const start = fixture.driver.start(id, never).then(
          () => "started",
          (fault: { code: string }) => fault.code,
        )
        void start.then(() => (state.over = true))
        let hit = false
        while (!state.over && !hit) {
          await new Promise(setImmediate)
          for (const pid of pidsIn(fixture.root, id).filter(isRuntime)) hit = tryKill(pid) || hit
        }
        const outcome = await start
        if (hit && outcome !== "started") hits++
        expect(["started", "unavailable", "internal"]).toContain(outcome)
        if (outcome !== "started") expect(pidsIn(fixture.root, id)).toEqual([])
        // A failed start is not the end of the sandbox.
        if (outcome !== "started" && round % 5 === 0) await fixture.driver.start(id, never)
        await fixture.destroy(id)
      }
    })
    console.log(`crash: the runtime was killed in time in ${hits} of 40 starts`)
    expect(hits).toBeGreaterThan(0)
  })

  it("of the launcher is a typed fault, sandboxes go on, and the next request has a new one", async () => {
    await fixture.leavesNothing(async () => {
      const sandbox = await fixture.start()
      const starting = await fixture.create()
      const start = fixture.driver.start(starting, never)
      killLaunchers()
      await expect(start).rejects.toMatchObject({ code: "unavailable" })
      expect(await text(sandbox, "echo alive")).toBe("alive\n")
      expect(await text(await fixture.driver.start(starting, never), "echo alive")).toBe("alive\n")
      expect((await sandbox.stats()).memoryBytes).toBeGreaterThan(0)
      expect(launcherPids(fixture.root)).toHaveLength(1)
      expect(fixture.logged.join("")).toContain("launch.restarted")
      await fixture.driver.stop(sandbox.id)
      await sandbox.ended
      expect(pidsIn(fixture.root, sandbox.id)).toEqual([])
      for (const id of [sandbox.id, starting]) await fixture.destroy(id)
    })
  })

  it("of the launcher, time and again and at any moment, leaves what a caller can go on with", async () => {
    const random = randomFrom(seed)
    await fixture.leavesNothing(async () => {
      let hits = 0
      for (let round = 0; round < 20; round++) {
        const spec = fixture.spec()
        const life = (async () => {
          await fixture.driver.create(spec, never)
          await text(await fixture.driver.start(spec.id, never), "echo x > /workspace/x")
          await fixture.driver.destroy(spec.id)
        })().catch((failure: { code: string }) => failure.code)
        await new Promise((resolve) => setTimeout(resolve, random() * 25))
        killLaunchers()
        const outcome = await life
        if (outcome !== undefined) hits++
        expect([undefined, "unavailable"], `round ${round} of seed ${seed}`).toContain(outcome)
        await fixture.destroy(spec.id)
        expect(await fixture.driver.exists(spec.id)).toBe(false)
      }
      expect(hits).toBeGreaterThan(0)
    })
  })

  it("of the launcher is no reason to start one for a driver that was closed", async () => {
    const id = await fixture.create()
    const { driver } = fixture
    await fixture.close()
    await expect(driver.destroy(id)).rejects.toMatchObject({ code: "unavailable" })
    expect(launcherPids(fixture.root)).toEqual([])
    await fixture.open()
    await fixture.destroy(id)
  })

  function killLaunchers(): void {
    for (const pid of launcherPids(fixture.root)) tryKill(pid)
  }

  describe("that left a name of a process", () => {
    /** A process that has nothing to do with us. */
    const innocent = async (): Promise<{ pid: number; ticks: string } & AsyncDisposable> => {
      const child = spawn("sleep", ["7000"], { stdio: ["pipe", "pipe", "pipe"] })
      await once(child, "spawn")
      const pid = child.pid ?? 0
      return {
        pid,
        ticks: startTicksOf(pid) ?? "",
        [Symbol.asyncDispose]: async () => {
          child.kill("SIGKILL")
          if (child.exitCode === null && child.signalCode === null) await once(child, "exit")
        },
      }
    }

    it.each(["adopt", "stop", "destroy"] as const)("%s does not touch whoever has it now", async (act) => {
      await using other = await innocent()
      // Another start time: a pid that was given again. The same one: after a reboot both may be alike.
      for (const startTicks of [String(Number(other.ticks) - 1), other.ticks]) {
        const id = await fixture.create()
        await fixture.driver.stop(id)
        writeFileSync(runningFile(fixture.root, id), JSON.stringify({ pid: other.pid, startTicks }))
        if (act === "adopt") expect((await adopted()).map((sandbox) => sandbox.id)).not.toContain(id)
        else await fixture.driver[act](id)
        expect(startTicksOf(other.pid), `with ${startTicks === other.ticks ? "the same" : "another"} start time`).toBe(
          other.ticks,
        )
        expect(readFileSync(`/proc/${other.pid}/stat`, "utf8")).toMatch(/\) S /)
        await fixture.destroy(id)
      }
    })
  })

  it("that left files half-written does not keep the driver from opening", async () => {
    const torn = await fixture.create()
    const whole = await fixture.create()
    // After a power cut a file that was renamed into place may be there and empty.
    writeFileSync(join(sandboxFolder(fixture.root, torn), "record.json"), "")
    writeFileSync(runningFile(fixture.root, whole), "")
    await fixture.close()
    await fixture.open()
    expect(await adopted()).toEqual([])
    expect(await fixture.driver.exists(torn)).toBe(false)
    expect(await text(await fixture.driver.start(whole, never), "echo alive")).toBe("alive\n")
    await fixture.destroy(whole)
  })

  it("that left a group nobody knows does not keep the driver from adopting", async () => {
    const sandbox = await fixture.start()
    const stray = join("/sys/fs/cgroup/pids", cgroupParent(fixture.root), "stray")
    mkdirSync(stray)
    try {
      await fixture.close()
      await fixture.open()
      expect((await adopted()).map(({ id }) => id)).toEqual([sandbox.id])
    } finally {
      try {
        rmdirSync(stray)
      } catch {
        // Taken away by adopt.
      }
    }
    await fixture.destroy(sandbox.id)
  })
})

function sandboxFolder(root: string, id: SandboxId): string {
  return join(root, "volume", id)
}

function runningFile(root: string, id: SandboxId): string {
  return join(sandboxFolder(root, id), "running.json")
}

function cmdline(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8")
  } catch {
    return ""
  }
}

function tryKill(pid: number): boolean {
  try {
    return process.kill(pid, "SIGKILL")
  } catch {
    return false
  }
}
