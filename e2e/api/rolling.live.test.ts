import { readFileSync } from "node:fs"
import { afterAll, expect, test } from "vitest"
import { Load } from "./load/load.ts"
import { ApiSystem } from "./system.ts"

/** How often each is replaced; `WARREN_RESTARTS=20` for who wants to be sure. */
const restarts = Number(process.env["WARREN_RESTARTS"] ?? 1)

// Far longer than a test may take: nothing is cut, and nobody who only watches holds anything up.
const system = await ApiSystem.start({ WARREN_DRAIN_S: "3600" })
afterAll(() => system[Symbol.asyncDispose]())

const bugs = /^.*"event":"[a-z]+\.bug".*$/gm

test(
  "control plane and runner are replaced while everybody asks: nothing that was acknowledged is undone",
  { timeout: 120_000 + restarts * 60_000 },
  async () => {
    const load = await Load.start(system)
    for (let restarted = 0; restarted < restarts; restarted++) {
      await load.goesOn()
      expect(await system.replaceControl()).toBe(0)
      await load.goesOn()
      expect(await system.replaceRunner()).toBe(0)
    }
    await load.goesOn()
    const { returns, made } = await load.finish()
    console.log(
      `${restarts} restarts of each: ${load.size} clients came back ${returns} times, ${made} things were made`,
    )
    const session = await system.warren.sessions.get("this-was-all")
    const running = async () => (await session.processes()).filter(({ isRunning }) => isRunning)
    await expect.poll(running, { timeout: 60_000 }).toEqual([])
    await session.delete()
    expect(await (await system.fetch("/v1/audit/verify")).json()).toMatchObject({ isWhole: true })
    const log = readFileSync(system.home.at("logs", "runner.log"), "utf8")
    expect(`${system.said}${log}`.match(bugs) ?? []).toEqual([])
  },
)
