import { randomInt } from "node:crypto"
import { readFileSync } from "node:fs"
import { setTimeout as pause } from "node:timers/promises"
import { afterAll, expect, test } from "vitest"
import { record } from "../security/results.ts"
import { Chance } from "./chance.ts"
import { Load } from "./load/load.ts"
import { ApiSystem } from "./system.ts"

/**
 * How often the control plane is killed; `WARREN_KILLS=660 WARREN_SEED=7` for a thousand with those of the starting. `WARREN_TEST_PROGRAMS=FOLDER`: a copy of
 * `dist`, where somebody else may build meanwhile.
 */
const kills = Number(process.env["WARREN_KILLS"] ?? 2)
/** Or for how long, where that is less. */
const minutes = Number(process.env["WARREN_KILLS_MINUTES"] ?? Infinity)
const seed = Number(process.env["WARREN_SEED"] ?? randomInt(2 ** 31))
/** So often every client has got something before the next kill; else it comes at any moment, and some are still coming back. */
const settledShare = 0.2
const anyMomentMs = 600
/** So often the next one is killed, too, while it starts; once more as often, and so on. */
const earlyShare = 0.35
const earlyMs = 500
const tellEvery = 25
/** What the design promises where nothing else goes on; on a loaded machine it is counted, not asserted. */
const promisedMs = 2_000

const system = await ApiSystem.start()
afterAll(() => system[Symbol.asyncDispose]())

test(
  `a control plane that is killed ${kills} times while everybody asks: nothing is lost, and nothing comes twice`,
  { timeout: 120_000 + kills * 30_000 },
  async () => {
    const chance = new Chance(seed)
    const load = await Load.start(system)
    expect(load.size).toBeGreaterThanOrEqual(19)
    const { runner } = system.pids
    const readyMs: number[] = []
    let early = 0
    const end = performance.now() + minutes * 60_000
    for (let killed = 0; killed < kills && performance.now() < end; killed++) {
      // However few they are, all of them have something to lose at the first.
      if (killed === 0 || chance.is(settledShare)) await load.goesOn()
      else await pause(chance.next() * anyMomentMs)
      load.throwFailure()
      await system.killControl()
      for (; chance.is(earlyShare); early++) await system.killControlEarly(chance.next() * earlyMs)
      readyMs.push(await startedMs())
      if ((killed + 1) % tellEvery === 0) console.log(`kills: ${killed + 1}, ${early} more of those that started`)
    }
    await load.goesOn()
    const { returns, made } = await load.finish()
    const slowest = Math.round(Math.max(...readyMs))
    const late = readyMs.filter((ms) => ms > promisedMs).length
    console.log(
      `${readyMs.length} kills and ${early} of those that started, seed ${seed}: ${load.size} clients came back ${returns} times, ` +
        `${made} things were made; ready again after at most ${slowest} ms`,
    )
    expect(returns).toBeGreaterThan(0)
    const session = await system.warren.sessions.get("this-was-all")
    // What somebody was waiting for has ended with whoever asked for it; what was to go on has ended in its own time.
    const running = async () => (await session.processes()).filter(({ isRunning }) => isRunning)
    await expect.poll(running, { timeout: 60_000 }).toEqual([])
    await session.delete()
    expect(system.pids.runner).toBe(runner)
    expect(await (await system.fetch("/v1/audit/verify")).json()).toMatchObject({ isWhole: true })
    const log = readFileSync(system.home.at("logs", "runner.log"), "utf8")
    expect(`${system.said}${log}`.match(/^.*"event":"[a-z]+\.bug".*$/gm) ?? []).toEqual([])
    record("kills-control", {
      ...{ cases: readyMs.length + early, seed, whileStarting: early, clients: load.size, returns, made },
      ...{ readyMsMedian: medianOf(readyMs), readyMsMax: slowest, readyLaterThan2s: late },
    })
  },
)

/** From its start until it answers. */
async function startedMs(): Promise<number> {
  const begun = performance.now()
  await system.startControl()
  return performance.now() - begun
}

function medianOf(all: readonly number[]): number {
  return Math.round(all.toSorted((a, b) => a - b)[all.length >> 1] ?? 0)
}
