import { ManualClock } from "@warren/base/clock.ts"
import { eventually } from "@warren/base/testing/eventually.ts"
import { sessionCalls } from "@warren/protocol/user-plane/sessions.ts"
import type { z } from "zod"
import { join } from "node:path"
import { exec } from "@warren/drivers/init/exec.ts"
import { Operation } from "@warren/drivers/init/operation.ts"
import { initPid } from "@warren/drivers/oci/testing/invariants.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { Engine } from "./engine.ts"
import { keepAwakeFolder } from "./inside.ts"
import type { State } from "./moves.ts"
import { Home } from "./testing/home.ts"

const never = new AbortController().signal
const minute = 60_000

describe("how long sessions live", () => {
  const home = new Home()
  const clock = new ManualClock(Date.now())
  let engine: Engine
  beforeAll(async () => {
    engine = await home.open({ clock })
  })
  afterAll(() => home[Symbol.asyncDispose]())

  const create = (wishes: z.input<(typeof sessionCalls)["session.create"]["in"]>) =>
    engine.sessions.create(sessionCalls["session.create"].in.parse({ network: { mode: "none" }, ...wishes }), never)
  const state = (id: string): State => engine.sessions.get(id).state
  /** Time goes on while it is waited for: what failed once is tried again some seconds later. */
  async function becomes(id: string, wanted: State): Promise<void> {
    while (state(id) !== wanted) {
      await pass(5_000)
      // What is under way takes time of its own, in which this clock must not run away.
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  async function run(id: string, cmd: string): Promise<void> {
    using use = await engine.sessions.use(id, never)
    const { code } = await exec(use.live.sandbox, { argv: ["sh", "-c", cmd] })
    expect(code).toBe(0)
  }
  /** Time passes, in steps small enough that whatever becomes due on the way is done. */
  async function pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 5_000) {
      await eventually(() => clock.sleeping > 0)
      await clock.advance(Math.min(5_000, ms - passed))
    }
  }

  /** Whoever sleeps for a moment before it looks again does so by the same clock. */
  async function passUntil(isSo: () => boolean): Promise<void> {
    while (!isSo()) {
      await clock.advance(50)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  test("a time to live begins anew with every use, by the session's own value", async () => {
    const { id } = await create({ ttlMs: 2 * minute })
    await pass(1.5 * minute)
    await run(id, "true")
    await pass(1.5 * minute)
    expect(state(id)).toBe("running")
    await pass(minute)
    await becomes(id, "stopped")
    expect(engine.sessions.get(id)).toMatchObject({ reason: "expired" })
    await expect(engine.sessions.restore(id, never)).rejects.toMatchObject({ code: "conflict" })
    await engine.sessions.delete(id)
  })

  test("does not pass while something is running in the foreground", async () => {
    const { id } = await create({ ttlMs: minute })
    {
      using _ = await engine.sessions.use(id, never)
      await pass(5 * minute)
      expect(state(id)).toBe("running")
    }
    await pass(2 * minute)
    await becomes(id, "stopped")
    await engine.sessions.delete(id)
  })

  test("a longest life ends it, used or not, asleep or not", async () => {
    const awake = await create({ lifeMs: 2 * minute })
    const asleep = await create({ lifeMs: 2 * minute })
    await engine.sessions.hibernate(asleep.id)
    for (let i = 0; i < 3; i++) {
      await pass(minute)
      if (i < 1) await run(awake.id, "true")
    }
    for (const { id } of [awake, asleep]) {
      await becomes(id, "stopped")
      expect(engine.sessions.get(id)).toMatchObject({ reason: "life" })
      await engine.sessions.delete(id)
    }
  })

  test.each(["pause", "hibernate"] as const)("a life can end with %s, once, and be given more", async (lifeAction) => {
    const asleep = lifeAction === "pause" ? "paused" : "hibernated"
    const { id } = await create({ lifeMs: 2 * minute, lifeAction })
    await run(id, "echo kept > ~/note")
    await pass(3 * minute)
    await becomes(id, asleep)
    await pass(10 * minute)
    expect(state(id)).toBe(asleep)
    await engine.sessions.update({ id, lifeMs: 10 * 60 * minute })
    await run(id, 'test "$(cat ~/note)" = kept')
    await pass(minute)
    expect(state(id)).toBe("running")
    await engine.sessions.update({ id, lifeMs: minute, lifeAction: "stop" })
    await becomes(id, "stopped")
    await engine.sessions.delete(id)
  })

  test.each(["pause", "hibernate", "stop"] as const)("idle: %s", async (action) => {
    const { id } = await create({ idle: { afterMs: minute, action } })
    await run(id, "echo kept > ~/note")
    await pass(2 * minute)
    await becomes(id, action === "pause" ? "paused" : action === "hibernate" ? "hibernated" : "stopped")
    if (action === "stop") await engine.sessions.restore(id, never)
    await run(id, 'test "$(cat ~/note)" = kept')
    expect(state(id)).toBe("running")
    await engine.sessions.delete(id)
  })

  test("what runs in the background is not idle; when it has ended, it is", async () => {
    const { id } = await create({ idle: { afterMs: minute, action: "hibernate" } })
    {
      using use = await engine.sessions.use(id, never)
      const argv = ["sh", "-c", "until [ -e /tmp/go ]; do sleep 0.05; done"]
      const stream = await use.live.sandbox.connect()
      await using operation = new Operation(stream, { op: "spawn", argv, detached: true })
      await operation.event("started")
    }
    await pass(3 * minute)
    expect(state(id)).toBe("running")
    {
      // Not a use: nobody but the program itself is told.
      const live = engine.sessions.live(id)
      await exec(live.sandbox, { argv: ["touch", "/tmp/go"] })
    }
    await becomes(id, "hibernated")
    await engine.sessions.delete(id)
  })

  test("a program inside can hold it awake, and a caller can", async () => {
    const { id } = await create({ idle: { afterMs: minute, action: "hibernate" } })
    const until = Math.floor((clock.now() + 4 * minute) / 1000)
    await run(id, `mkdir -p ${keepAwakeFolder} && touch -d @${until} ${keepAwakeFolder}/me`)
    await pass(3 * minute)
    expect(state(id)).toBe("running")
    engine.sessions.keepAwake(id, 10 * minute)
    await pass(5 * minute)
    expect(state(id)).toBe("running")
    await pass(8 * minute)
    await becomes(id, "hibernated")
    await engine.sessions.delete(id)
  })

  test("a wall clock that jumps ends nothing and saves nothing", async () => {
    const { id } = await create({ ttlMs: 30 * minute, idle: { afterMs: 90_000, action: "pause" } })
    clock.jump(60 * minute)
    await pass(minute)
    expect(state(id)).toBe("running")
    clock.jump(-120 * minute)
    await pass(45_000)
    await becomes(id, "paused")
    await pass(10 * minute)
    expect(state(id)).toBe("paused")
    await becomes(id, "stopped")
    clock.jump(60 * minute)
    await engine.sessions.delete(id)
  })

  test("snapshots are made by themselves, and the oldest go", async () => {
    const { id } = await create({ snapshots: { everyMs: minute, keep: 2 } })
    for (let i = 1; i <= 4; i++) {
      await run(id, `echo ${i} > ~/note`)
      const before = engine.snapshots.list({ session: id, limit: 10 }).items[0]?.id
      await pass(minute + 5_000)
      await passUntil(() => engine.snapshots.list({ session: id, limit: 10 }).items[0]?.id !== before)
    }
    await passUntil(() => engine.snapshots.list({ session: id, limit: 10 }).items.length === 2)
    const [, older] = engine.snapshots.list({ session: id, limit: 10 }).items
    expect(older).toMatchObject({ isAutomatic: true })
    await engine.sessions.rollback(id, older?.id ?? "", never)
    await run(id, 'test "$(cat ~/note)" = 3')
    await engine.sessions.delete(id)
    for (const { id: snapshot } of engine.snapshots.list({ limit: 10 }).items) await engine.snapshots.delete(snapshot)
  })

  test("a sandbox that dies is noticed by itself, and its files are there again", async () => {
    const { id } = await create({})
    await run(id, "echo kept > ~/note; sync")
    process.kill(initPid(join(home.root, "oci"), engine.sessions.live(id).id), "SIGKILL")
    await becomes(id, "failed")
    expect(engine.sessions.get(id)).toMatchObject({ reason: "died" })
    await expect(run(id, "true")).rejects.toMatchObject({ code: "conflict" })
    await engine.sessions.restore(id, never)
    await run(id, 'test "$(cat ~/note)" = kept')
    await engine.sessions.delete(id)
  })
})
