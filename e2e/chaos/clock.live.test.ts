import { setTimeout as pause } from "node:timers/promises"
import { Fault } from "@warren/base/fault.ts"
import type { Session } from "@warren/sdk/session.ts"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { ApiSystem } from "../api/system.ts"
import { keyOf } from "../e2b/system.ts"
import { record } from "../security/results.ts"
import { Mishap } from "./mishap.ts"

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
/** By how much the clock is wrong, one after the other; at the end it is right. */
const jumps = { "an hour on": hour, "an hour back": -hour, "a day on": day, "a day back": -day, "to 1970": -Date.now() }

/**
 * Everything on a machine whose wall clock jumps while sessions live: what measures goes on measuring, what is said in times is as the
 * clock says, nothing that is fresh goes, and nobody begins to run in circles.
 */
describe.skipIf(process.getuid?.() !== 0)("a wall clock that jumps", { timeout: 120_000 }, () => {
  const mishap = new Mishap()
  let system: ApiSystem

  beforeAll(async () => {
    system = await ApiSystem.start(mishap.env("/nonexistent"))
  })
  afterAll(async () => {
    for await (const { id } of system.warren.sessions.list()) await (await system.warren.sessions.get(id)).delete()
    await system[Symbol.asyncDispose]()
    mishap[Symbol.dispose]()
  })

  const asked = async (path: string, body?: object, more: Record<string, string> = {}): Promise<Response> =>
    system.fetch(path, {
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
      headers: { "content-type": "application/json", ...more },
    })
  const answered = async (path: string, body?: object, more: Record<string, string> = {}) => {
    const answer = await asked(path, body, more)
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
    return (await answer.json()) as Record<string, unknown>
  }
  const tokenFor = async (lifeMs: number): Promise<string> =>
    String((await answered("/v1/tokens", { lifeMs, scopes: ["account:read"] }))["token"])
  const statusOf = async (token: string): Promise<number> =>
    (await asked("/v1/tokens", undefined, { authorization: `Bearer ${token}` })).status
  /** How often the loops of runner and control plane turn while a command waits. */
  const turnsOf = async (session: Session): Promise<number> => {
    const before = mishap.turns
    await session.exec("sleep 0.5")
    return mishap.turns - before
  }

  it("ends no session, breaks no order, loses nothing fresh and turns nobody in circles", async () => {
    const { warren } = system
    const limited = [
      { ttlMs: 20 * minute },
      { lifeMs: 20 * minute },
      { idle: { afterMs: 20 * minute, action: "stop" as const } },
    ]
    const sessions: Session[] = []
    for (const wishes of limited) sessions.push(await warren.sessions.create({ ...wishes, keep: true }))
    const [first] = sessions
    if (!first) throw new Error("there is none")
    const states = async (): Promise<unknown[]> =>
      Promise.all(sessions.map(async ({ id }) => (await warren.sessions.get(id)).info.state))
    const [short, long] = [await tokenFor(30 * minute), await tokenFor(30 * day)]
    const once = async (key: string): Promise<string> =>
      String((await answered("/v1/sessions", {}, { "idempotency-key": key }))["id"])
    const watcher = await watch()
    const usual = await turnsOf(first)
    const busiest: number[] = []
    for (const [what, ms] of Object.entries(jumps)) {
      mishap.clockMs = 0
      const made = await once(what)
      mishap.clockMs = ms
      expect(await states(), what).toEqual(["running", "running", "running"])
      expect(await first.exec("echo on"), what).toMatchObject({ stdout: "on\n" })
      expect(await statusOf(short), what).toBe(ms > 30 * minute ? 401 : 200)
      expect(await statusOf(long), what).toBe(200)
      // Asked for twice it is one, for a day: as that clock has it.
      if (ms < day) expect(await once(what), what).toBe(made)
      await (await warren.sessions.get(made)).delete()
      // Made while the clock is wrong: as good as any other, and the newest.
      const { id } = await warren.sessions.create({ keep: true })
      for await (const newest of warren.sessions.list()) {
        expect(newest.id, what).toBe(id)
        break
      }
      await (await warren.sessions.get(id)).delete()
      expect(await watcher.isThere(), what).toBe(true)
      expect(await answered("/v1/audit/verify"), what).toMatchObject({ isWhole: true })
      busiest.push(await turnsOf(first))
    }
    mishap.clockMs = 0
    expect(await states()).toEqual(["running", "running", "running"])
    expect(await statusOf(short)).toBe(200)
    // A loop without a pause turns some thousand times in that while.
    for (const turns of busiest) expect(turns).toBeLessThan(usual * 3 + 300)
    record("clock-jumps", { cases: Object.keys(jumps).length, usualTurns: usual, turnsMax: Math.max(...busiest) })
  })

  it("keeps the numbers of a feed in order, and a runner that starts in 1970 tells readers of an earlier one", async () => {
    const { warren } = system
    const seen: number[] = []
    const stop = new AbortController()
    const until = async (count: number): Promise<void> => {
      while (seen.length < count && !fault) await pause(10)
      if (fault) throw fault
    }
    let fault: Fault | undefined
    const reading = (async () => {
      for await (const { seq } of warren.sessions.events({ signal: stop.signal })) seen.push(seq)
    })().catch((failure: unknown) => (fault = Fault.from(failure)))
    // At first it is right: a request that is under way at a jump may be refused, as one that was signed in another time.
    for (const ms of [0, ...Object.values(jumps), 0]) {
      mishap.clockMs = ms
      const before = seen.length
      await (await warren.sessions.create({})).delete()
      await until(before + 2)
    }
    expect(seen).toEqual(seen.toSorted((a, b) => a - b))
    expect(new Set(seen).size).toBe(seen.length)
    stop.abort()
    await reading
    expect(fault).toMatchObject({ code: "cancelled" })
    const { id } = await warren.sessions.create({ ttlMs: 20 * minute, keep: true })
    mishap.clockMs = jumps["to 1970"]
    await system.replaceRunner()
    await expect(warren.sessions.events({ after: seen.at(-1) ?? 0 }).next()).rejects.toMatchObject({ code: "resync" })
    // Its clock is set right when it has found the network: nothing is a day, or 56 years, old for that.
    mishap.clockMs = 0
    const session = await warren.sessions.get(id)
    expect(await session.exec("echo on")).toMatchObject({ stdout: "on\n" })
    expect((await warren.sessions.get(id)).info.state).toBe("running")
  })

  /** Somebody asks now and then what has changed in a folder. */
  async function watch(): Promise<{ isThere(): Promise<boolean> }> {
    const key = await keyOf(system)
    const made = await answered("/e2b/sandboxes", { templateID: "base", timeout: 3_000 }, { "x-api-key": key })
    const headers = {
      ...{ "e2b-sandbox-id": String(made["sandboxID"]), "x-access-token": String(made["envdAccessToken"]) },
      authorization: `Basic ${Buffer.from("user:").toString("base64")}`,
    }
    const create = async (): Promise<Record<string, unknown>> =>
      answered("/filesystem.Filesystem/CreateWatcher", { path: "/home/user" }, headers)
    const { watcherId } = await create()
    return {
      async isThere() {
        // Those that nobody asks go when there is another.
        await create()
        return (await asked("/filesystem.Filesystem/GetWatcherEvents", { watcherId }, headers)).ok
      },
    }
  }
})
