import type { Handlers } from "@warren/protocol/contract.ts"
import { Chunk, type Conversation } from "@warren/protocol/conversation.ts"
import { sessionCalls } from "@warren/protocol/user-plane/sessions.ts"
import type { z } from "zod"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { processHandlers } from "../processes/handlers.ts"
import type { Engine } from "./engine.ts"
import { sessionHandlers } from "./handlers.ts"
import { Home } from "./testing/home.ts"

const context = { signal: new AbortController().signal, caller: { name: "tester" } }

describe("sessions on a real driver", () => {
  const home = new Home()
  let engine: Engine
  beforeAll(async () => {
    engine = await home.open()
  })
  afterAll(() => home[Symbol.asyncDispose]())

  const calls = (): Handlers<typeof sessionCalls> => sessionHandlers(engine.sessions, engine.snapshots)
  const create = (wishes: z.input<(typeof sessionCalls)["session.create"]["in"]> = {}) =>
    calls()["session.create"](sessionCalls["session.create"].in.parse(wishes), context)
  async function run(session: string, cmd: string): Promise<{ text: string; exitCode: number | null }> {
    const handlers = processHandlers(engine.sessions, (use, env) => ({ ...use.record.env, ...env }))
    const input = { session, cmd, env: {}, stdin: false, timeoutMs: 60_000, outputBytesMax: 0 }
    await using talk = (await handlers["process.exec"](input, context)) as Conversation<
      unknown,
      { ev: string; exitCode?: number | null }
    >
    let text = ""
    for (;;) {
      const item = await talk.next()
      if (item === undefined) throw new Error("no exit")
      if (item instanceof Chunk) text += item.bytes.toString()
      else if (item.ev === "exit") return { text, exitCode: item.exitCode ?? null }
    }
  }

  test("is made, used and deleted", async () => {
    const session = await create({ name: "first", env: { A: "b" }, network: { mode: "none" } })
    expect(session).toMatchObject({ name: "first", state: "running", acquireSource: "cold", env: ["A"] })
    expect(await run("first", "echo $A; exit 3")).toEqual({ text: "b\n", exitCode: 3 })
    await expect(create({ name: "first" })).rejects.toMatchObject({ code: "conflict" })
    await calls()["session.delete"]({ id: "first" }, context)
    await expect(run("first", "true")).rejects.toMatchObject({ code: "not_found" })
    expect(engine.store.sandboxes()).toEqual([])
  })

  test("sleeps with its files and wakes when it is used", async () => {
    const { id } = await create({})
    await run(id, "echo kept > ~/note")
    expect(await calls()["session.hibernate"]({ id }, context)).toMatchObject({ state: "hibernated" })
    expect(await run(id, "cat ~/note")).toEqual({ text: "kept\n", exitCode: 0 })
    expect(engine.sessions.get(id).state).toBe("running")
  })

  test("sleeps with a shell's history and 200 MB of installed packages, and has all of it when it wakes", async () => {
    const { id } = await create({ network: { mode: "none" } })
    const install = `mkdir -p ~/lib && cd ~/lib && for package in $(seq 200); do
        mkdir -p node_modules/p$package/lib && head -c 1000000 /dev/urandom > node_modules/p$package/lib/index.js
        ln -s ../p$package/lib/index.js node_modules/.bin-$package; done
      echo 'npm install' >> ~/.bash_history; chmod 750 ~/lib; find . -type f | sort | xargs sha256sum | sha256sum; find . | wc -l`
    const before = await run(id, install)
    await calls()["session.hibernate"]({ id }, context)
    const look = "cd ~/lib && find . -type f | sort | xargs sha256sum | sha256sum; find . | wc -l"
    expect(await run(id, look)).toEqual(before)
    expect((await run(id, "cat ~/.bash_history; stat -c %a ~/lib")).text).toBe("npm install\n750\n")
    await calls()["session.delete"]({ id }, context)
  })

  test("forks: parent and children go their own ways", async () => {
    const { id } = await create({})
    await run(id, "echo parent > ~/note")
    const { sessions } = await calls()["session.fork"]({ id, count: 3 }, context)
    expect(sessions.map(({ parent }) => parent)).toEqual([id, id, id])
    for (const [index, fork] of sessions.entries()) await run(fork.id, `echo ${index} >> ~/note`)
    await run(id, "echo still >> ~/note")
    const notes = await Promise.all([id, ...sessions.map((fork) => fork.id)].map((one) => run(one, "cat ~/note")))
    expect(notes.map(({ text }) => text)).toEqual(["parent\nstill\n", "parent\n0\n", "parent\n1\n", "parent\n2\n"])
  })

  test("rolls back to a snapshot", async () => {
    const { id } = await create({})
    await run(id, "echo one > ~/note")
    const snapshot = await calls()["snapshot.create"]({ session: id, name: "one" }, context)
    await run(id, "echo two > ~/note")
    await calls()["session.rollback"]({ id, snapshot: snapshot.id }, context)
    expect((await run(id, "cat ~/note")).text).toBe("one\n")
  })

  test("goes on while the runner is replaced", async () => {
    const { id } = await create({})
    await run(id, "echo hi > /tmp/note; sleep 1000 & echo $! > /tmp/pid")
    engine = await home.open()
    expect(engine.found.adopted).toBeGreaterThan(0)
    expect((await run(id, "cat /tmp/note; kill -0 $(cat /tmp/pid) || echo gone")).text).toBe("hi\n")
  })
})
