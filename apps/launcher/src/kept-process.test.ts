import { spawn } from "node:child_process"
import { ManualClock } from "@warren/base/clock.ts"
import { silentLog } from "@warren/base/log.ts"
import { describe, expect, test } from "vitest"
import { keepLimits, KeptProcess } from "./kept-process.ts"

const never = new AbortController().signal

function kept(command: string, clock: ManualClock, ready: () => Promise<void> = () => Promise.resolve()) {
  const counts = { spawned: 0 }
  const spawnOne = () => {
    counts.spawned++
    return spawn("sh", ["-c", command], { stdio: "ignore" })
  }
  return { counts, process: new KeptProcess({ name: "it", spawn: spawnOne, ready, clock, log: silentLog }) }
}

describe("a kept process", () => {
  test("that keeps dying is left alone in the end, and says how it ended", async () => {
    const clock = new ManualClock()
    const { counts, process: one } = kept("exit 3", clock, () => new Promise(() => undefined))
    let isOver = false
    const started = one.start(never).finally(() => (isOver = true))
    started.catch(() => undefined)
    while (!isOver) {
      if (one.report().state === "waiting") await clock.advance(keepLimits.capMs)
      await new Promise(setImmediate)
    }
    await expect(started).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("exit code 3"),
    })
    expect(counts.spawned).toBe(keepLimits.deathsMax)
    expect(one.report()).toMatchObject({ state: "failed", lastEnd: "exit code 3" })
  })

  test("that dies now and then is started again for ever, and nothing of its lives is kept", async () => {
    const warnings: Error[] = []
    const warned = (warning: Error): number => warnings.push(warning)
    process.on("warning", warned)
    try {
      const clock = new ManualClock()
      const { counts, process: one } = kept("exec sleep 1000", clock)
      await one.start(never)
      for (let life = 2; life < 14; life++) {
        await clock.advance(keepLimits.settledMs + 1)
        process.kill(one.report().pid ?? 0, "SIGKILL")
        while (counts.spawned < life || one.report().state !== "running") {
          if (one.report().state === "waiting") await clock.advance(keepLimits.capMs)
          await new Promise(setImmediate)
        }
      }
      await one.stop()
      expect(warnings).toEqual([])
    } finally {
      process.off("warning", warned)
    }
  })

  test("is started once by two, and stopped twice", async () => {
    const { counts, process: one } = kept("exec sleep 1000", new ManualClock())
    await Promise.all([one.start(never), one.start(never)])
    expect(one.report().state).toBe("running")
    await Promise.all([one.stop(), one.stop()])
    expect(one.report()).toMatchObject({ state: "stopped", lastEnd: "SIGTERM" })
    await one.start(never)
    expect(counts.spawned).toBe(2)
    await one.stop()
  })

  test("a start nobody waits for any more can still be stopped", async () => {
    const { process: one } = kept("exec sleep 1000", new ManualClock(), () => new Promise(() => undefined))
    const gone = new AbortController()
    const started = one.start(gone.signal)
    gone.abort(new Error("left"))
    await expect(started).rejects.toThrow("left")
    await one.stop()
    expect(one.report().state).toBe("stopped")
  })
})
