import { readFileSync } from "node:fs"
import { afterAll, expect, test } from "vitest"
import { Load } from "./load/load.ts"
import { ApiSystem } from "./system.ts"

/** How often the control plane is killed; `WARREN_KILLS=50` for who wants to be sure. */
const kills = Number(process.env["WARREN_KILLS"] ?? 2)

const system = await ApiSystem.start()
afterAll(() => system[Symbol.asyncDispose]())

test(
  `a control plane that is killed ${kills} times while everybody asks: nothing is lost, and nothing comes twice`,
  { timeout: 120_000 + kills * 30_000 },
  async () => {
    const load = await Load.start(system)
    expect(load.size).toBeGreaterThanOrEqual(19)
    const { runner } = system.pids
    for (let killed = 0; killed < kills; killed++) {
      await load.goesOn()
      await system.killControl()
      await system.startControl()
    }
    await load.goesOn()
    const { returns, made } = await load.finish()
    console.log(`${kills} kills: ${load.size} clients came back ${returns} times, ${made} things were made`)
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
  },
)
