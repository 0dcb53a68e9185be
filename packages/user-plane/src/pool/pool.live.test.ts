import { readFileSync } from "node:fs"
import { join } from "node:path"
import { eventually } from "@warren/base/testing/eventually.ts"
import { exec } from "@warren/drivers/init/exec.ts"
import { freeze, initPid } from "@warren/drivers/oci/testing/invariants.ts"
import { sessionCalls } from "@warren/protocol/user-plane/sessions.ts"
import type { z } from "zod"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import type { Engine } from "../sessions/engine.ts"
import { Home } from "../sessions/testing/home.ts"

const never = new AbortController().signal
const megabyte = 1024 * 1024

const hasEnded = (pid: number): boolean => isIn(pid, /\) [ZX] /)
/** Or has ended. */
const hasStopped = (pid: number): boolean => isIn(pid, /\) [TZX] /)

function isIn(pid: number, state: RegExp): boolean {
  try {
    return state.test(readFileSync(`/proc/${pid}/stat`, "utf8"))
  } catch {
    return true
  }
}

describe("the pool", () => {
  let home: Home
  beforeEach(() => {
    home = new Home()
  })
  afterEach(() => home[Symbol.asyncDispose]())

  const create = (engine: Engine, wishes: z.input<(typeof sessionCalls)["session.create"]["in"]> = {}) =>
    engine.sessions.create(sessionCalls["session.create"].in.parse(wishes), never)
  const ready = (engine: Engine): number => engine.pool.list().reduce((sum, pool) => sum + pool.ready, 0)

  test("has sandboxes ready, gives each to one session, and fills itself again", async () => {
    const engine = await home.open({ poolBytes: 16 * megabyte, poolLeast: 3 })
    await eventually(() => ready(engine) === 3)
    const waiting = engine.store.sandboxes().map(({ id }) => id)
    const sessions = await Promise.all(Array.from({ length: 3 }, () => create(engine)))
    expect(sessions.map((session) => session.acquireSource)).toEqual(["pool", "pool", "pool"])
    const given = sessions.map(({ id }) => engine.sessions.record(id).sandbox)
    expect(new Set(given)).toEqual(new Set(waiting))
    await eventually(() => ready(engine) >= 3)
    for (const { id } of sessions) await engine.sessions.delete(id)
    expect(engine.store.sandboxes().map(({ id }) => id)).not.toContain(given[0])
  })

  test("gives nothing that was used before, and what it gives is clean", async () => {
    const engine = await home.open({ poolBytes: 16 * megabyte, poolLeast: 1 })
    for (let i = 0; i < 5; i++) {
      await eventually(() => ready(engine) > 0)
      const { id } = await create(engine, { env: { OWNER: String(i) } })
      using use = await engine.sessions.use(id, never)
      const look = await exec(use.live.sandbox, {
        argv: ["sh", "-c", "ls -A /workspace /tmp ~ | grep -v '^/\\|^$\\|^\\.' ; touch ~/mine /tmp/mine"],
      })
      expect(look.stdout.toString()).not.toContain("mine")
      await engine.sessions.delete(id)
    }
  })

  test("does not hand out one that has died", async () => {
    const engine = await home.open({ poolBytes: 16 * megabyte, poolLeast: 2 })
    await eventually(() => ready(engine) === 2)
    const pids = engine.store.sandboxes().map(({ id }) => initPid(join(home.root, "oci"), id))
    for (const pid of pids) process.kill(pid, "SIGKILL")
    // A signal that was sent has not killed anybody yet.
    await eventually(() => pids.every(hasEnded))
    const { id } = await create(engine)
    using use = await engine.sessions.use(id, never)
    expect((await exec(use.live.sandbox, { argv: ["true"] })).code).toBe(0)
    await eventually(() => ready(engine) >= 2)
  })

  test("does not hand out one that was stopped, or that has stopped to answer", async () => {
    const engine = await home.open({ poolBytes: 16 * megabyte, poolLeast: 2 })
    await eventually(() => ready(engine) === 2)
    const waiting = (): string[] => engine.store.sandboxes().map(({ id }) => id)
    const stopped = waiting()
    const stopAll = async (): Promise<void> => {
      const pids = waiting().map((id) => initPid(join(home.root, "oci"), id))
      for (const pid of pids) process.kill(pid, "SIGSTOP")
      await eventually(() => pids.every(hasStopped))
    }
    await stopAll()
    await engine.pool.check()
    await eventually(() => waiting().length === 2 && !waiting().some((id) => stopped.includes(id)))
    await eventually(() => ready(engine) === 2)
    await stopAll()
    expect((await create(engine)).acquireSource).toBe("cold")
  })

  test("does not hand out one that somebody froze, and makes others", async () => {
    const engine = await home.open({ poolBytes: 16 * megabyte, poolLeast: 2 })
    await eventually(() => ready(engine) === 2)
    const frozen = engine.store.sandboxes().map(({ id }) => id)
    for (const id of frozen) freeze(join(home.root, "oci"), id)
    const { id } = await create(engine)
    using use = await engine.sessions.use(id, never)
    expect((await exec(use.live.sandbox, { argv: ["true"] })).code).toBe(0)
    await eventually(() => ready(engine) === 2)
    expect(engine.store.sandboxes().filter((one) => frozen.includes(one.id))).toEqual([])
  })

  test("follows what is asked for, within its budget", async () => {
    const engine = await home.open({ poolBytes: 4 * megabyte, poolLeast: 0 })
    const first = await Promise.all(Array.from({ length: 6 }, () => create(engine, { network: { mode: "none" } })))
    expect(first.every((session) => session.acquireSource === "cold")).toBe(true)
    await eventually(() => ready(engine) === 4)
    const again = await create(engine, { network: { mode: "none" } })
    expect(again.acquireSource).toBe("pool")
    expect((await create(engine, { network: { mode: "none" }, limits: { cpus: 0.5 } })).acquireSource).toBe("cold")
  })

  test("that a killed runner left is taken up by the next, and drained by a graceful end", async () => {
    let engine = await home.open({ poolBytes: 16 * megabyte, poolLeast: 2 })
    await eventually(() => ready(engine) === 2)
    await home.close()
    engine = await home.open()
    expect(engine.store.sandboxes()).toEqual([])
    expect(engine.found).toMatchObject({ waiting: 0, removed: 0 })
  })

  test("holds nobody's workspace, and lets go of an image that is to go", async () => {
    const engine = await home.open({ poolBytes: 16 * megabyte, poolLeast: 0 })
    const network = { mode: "none" } as const
    for (const n of [1, 2])
      expect((await create(engine, { network, workspace: "mine" })).acquireSource, `${n}`).toBe("cold")
    await create(engine, { network })
    await eventually(() => ready(engine) > 0)
    expect(engine.store.sandboxes().filter(({ plan, owner }) => owner === "pool" && plan.workspace)).toEqual([])
    await engine.pool.release("host")
    expect(engine.store.sandboxes().filter(({ owner }) => owner === "pool")).toEqual([])
    expect(engine.pool.list()).toEqual([])
  })

  test("a name that is taken costs nobody a sandbox", async () => {
    const engine = await home.open({ poolBytes: 16 * megabyte, poolLeast: 1 })
    await eventually(() => ready(engine) === 1)
    await create(engine, { name: "taken" })
    await eventually(() => ready(engine) >= 1)
    const before = engine.store.sandboxes().length
    await expect(create(engine, { name: "taken" })).rejects.toMatchObject({ code: "conflict" })
    expect(engine.store.sandboxes().length).toBeGreaterThanOrEqual(before)
  })
})
