import { ManualClock } from "@warren/base/clock.ts"
import { sessionCalls } from "@warren/protocol/user-plane/sessions.ts"
import { sessionHandlers } from "@warren/user-plane/sessions/handlers.ts"
import { Home } from "@warren/user-plane/sessions/testing/home.ts"
import { afterAll, describe, expect, it } from "vitest"

const hour = 3_600_000
const context = { signal: new AbortController().signal, caller: { name: "tester" } }

describe.skipIf(process.getuid?.() !== 0)("a clock that jumps", () => {
  const home = new Home()
  afterAll(() => home[Symbol.asyncDispose]())

  it("ends nothing; time that passes does", async () => {
    const clock = new ManualClock()
    const { sessions, snapshots } = await home.open({ clock })
    const calls = sessionHandlers(sessions, snapshots)
    const create = (wishes: object) =>
      calls["session.create"](
        sessionCalls["session.create"].in.parse({ network: { mode: "none" }, ...wishes }),
        context,
      )
    const ttl = await create({ ttlMs: 60_000 })
    const life = await create({ lifeMs: 60_000 })
    const idle = await create({ idle: { afterMs: 60_000, action: "stop" } })
    const all = [ttl, life, idle].map(({ id }) => id)
    const states = (): string[] => all.map((id) => sessions.get(id).state)
    /** The reaper has looked at everything, and sleeps. */
    const rests = async (): Promise<void> => {
      await clock.advance(2_000)
      await expect.poll(() => clock.sleeping).toBeGreaterThan(0)
    }
    for (const ms of [hour, -hour, -hour, hour]) {
      clock.jump(ms)
      await rests()
      expect(states(), `after a jump by ${ms} ms`).toEqual(["running", "running", "running"])
    }
    // Used after a jump back, it has its whole time again and not an hour more.
    clock.jump(-hour)
    using use = await sessions.use(ttl.id, context.signal)
    use[Symbol.dispose]()
    await clock.advance(45_000)
    await expect.poll(() => clock.sleeping).toBeGreaterThan(0)
    expect(sessions.get(ttl.id).state).toBe("running")
    await clock.advance(20_000)
    // Whoever looked a moment before sleeps by this clock again: it has to go on.
    const later = async (): Promise<string[]> => {
      await clock.advance(1_000)
      return states()
    }
    await expect.poll(later, { timeout: 20_000 }).toEqual(["stopped", "stopped", "stopped"])
    expect(all.map((id) => sessions.get(id).reason)).toEqual(["expired", "life", "idle"])
  })
})
