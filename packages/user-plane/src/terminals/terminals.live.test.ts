import { Chunk, type Conversation } from "@warren/protocol/conversation.ts"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { GatewaySystem } from "../gateway/testing/gateway-system.ts"
import { terminalLimits } from "./terminals.ts"

const { perSessionMax } = terminalLimits

type Told = { readonly ev?: string; readonly [field: string]: unknown }
type Talk = Conversation<unknown, Told>

/** Reads until its output holds this; gives all of it, and what was told meanwhile. */
async function until(talk: Talk, wanted: string | RegExp): Promise<{ text: string; told: Told[] }> {
  let text = ""
  const told: Told[] = []
  for (;;) {
    const item = await talk.next()
    if (item === undefined) throw new Error(`it ended before ${wanted}: ${text}`)
    if (item instanceof Chunk) text += item.bytes.toString()
    else told.push(item)
    if (typeof wanted === "string" ? text.includes(wanted) : wanted.test(text)) return { text, told }
  }
}

async function event(talk: Talk, ev: string): Promise<Told> {
  for (;;) {
    const item = await talk.next()
    if (item === undefined) throw new Error(`it ended before ${ev}`)
    if (!(item instanceof Chunk) && item.ev === ev) return item
  }
}

describe.skipIf(process.getuid?.() !== 0)("terminals", { timeout: 120_000 }, () => {
  const system = new GatewaySystem()
  let session = ""
  const attach = (name: string, more: object = {}): Promise<Talk> =>
    system.ask.open("terminal.attach", { session, name, ...more })

  beforeAll(async () => {
    await system.open()
    session = (await system.ask.call("session.create", { network: { mode: "none" } })).id
  }, 120_000)
  afterAll(() => system[Symbol.asyncDispose](), 60_000)

  it("are made when somebody looks, are a real terminal, and go on when nobody looks", async () => {
    {
      await using talk = await attach("main", { cols: 100, rows: 30 })
      expect(await talk.next()).toMatchObject({ ev: "attached", dropped: 0, viewers: 1, size: { cols: 100, rows: 30 } })
      await talk.write(Buffer.from("tty && stty size && KEPT=still-there\r"))
      await until(talk, /\/dev\/pts\/\d+[^]*30 100/)
    }
    const { terminals } = await system.ask.call("terminal.list", { session })
    expect(terminals).toMatchObject([{ name: "main", viewers: 0, size: { cols: 100, rows: 30 } }])
    await using again = await attach("main")
    // What was said before is said again to who comes later.
    await until(again, "30 100")
    await again.write(Buffer.from("echo $KEPT-yes\r"))
    await until(again, "still-there-yes")
    expect((await system.ask.call("terminal.open", { session })).isNew).toBe(false)
  })

  it("show the same to everybody, and tell each what size another made it", async () => {
    await using one = await attach("both", { cols: 80, rows: 24 })
    await event(one, "attached")
    await using two = await attach("both")
    expect(await event(two, "attached")).toMatchObject({ viewers: 2, size: { cols: 80, rows: 24 } })
    two.send({ op: "resize", cols: 132, rows: 43 })
    expect(await event(one, "resized")).toEqual({ ev: "resized", cols: 132, rows: 43 })
    await one.write(Buffer.from("stty size; echo from-$((1 + 1))\r"))
    expect((await until(two, "from-2")).text).toContain("43 132")
    await until(one, "from-2")
  })

  it("are one when several ask for a new one at once", async () => {
    const opened = await Promise.all(
      Array.from({ length: 5 }, () => system.ask.call("terminal.open", { session, name: "once" })),
    )
    expect(new Set(opened.map(({ terminal }) => terminal.pid)).size).toBe(1)
    expect(opened.filter(({ isNew }) => isNew)).toHaveLength(1)
  })

  it("go on from a byte for who was away, and say how they ended", async () => {
    await system.ask.call("terminal.open", { session, name: "count", cmd: "echo first; read x; echo got:$x; exit 3" })
    let after = 0
    {
      await using talk = await attach("count")
      const { from } = (await event(talk, "attached")) as { from: number }
      after = from + Buffer.byteLength((await until(talk, "first\r\n")).text)
    }
    await using talk = await attach("count", { after })
    await talk.write(Buffer.from("me\r"))
    const { text } = await until(talk, "got:me")
    expect(text).not.toContain("first")
    expect(await event(talk, "exit")).toMatchObject({ exitCode: 3, reason: "exit" })
    expect(await talk.next()).toBeUndefined()
    const { terminals } = await system.ask.call("terminal.list", { session })
    expect(terminals.map(({ name }) => name)).not.toContain("count")
  })

  it("are closed with what runs in them, also with what does not want to go", async () => {
    await using talk = await attach("stubborn", { cmd: "trap '' HUP TERM; echo here; while :; do sleep 1; done" })
    await until(talk, "here")
    expect(await system.ask.call("terminal.close", { session, name: "stubborn" })).toEqual({ wasRunning: true })
    expect(await event(talk, "exit")).toMatchObject({ signal: "SIGKILL" })
    expect(await system.ask.call("terminal.close", { session, name: "stubborn" })).toEqual({ wasRunning: false })
  })

  it("do not keep a session awake when nothing runs in them, and do when something does", async () => {
    const { id } = await system.ask.call("session.create", {
      network: { mode: "none" },
      idle: { afterMs: 1_000, action: "hibernate" },
    })
    await system.ask.call("terminal.open", { session: id, name: "busy", cmd: "sleep 6; touch ~/was-done; exec cat" })
    await system.ask.call("terminal.open", { session: id, name: "idle" })
    for await (const { item } of system.ask.feed("session.follow", { after: 0 })) {
      const isOurs = (item as unknown as { id: string }).id === id
      if (isOurs && (await system.ask.call("session.get", { id })).state === "hibernated") break
    }
    // A session that sleeps has none, and is not woken by being asked.
    expect((await system.ask.call("terminal.list", { session: id })).terminals).toEqual([])
    expect((await system.ask.call("session.get", { id })).state).toBe("hibernated")
    // Looking wakes it, and the terminal is a new one.
    await using talk = (await system.ask.open("terminal.attach", { session: id, name: "idle" })) as Talk
    expect(await event(talk, "attached")).toMatchObject({ from: 0 })
    expect(await system.ask.run(id, "test -e ~/was-done")).toMatchObject({ exitCode: 0 })
  })

  it("are so many in one session, and one more is refused", async () => {
    const { id } = await system.ask.call("session.create", { network: { mode: "none" } })
    const open = (name: string) => system.ask.call("terminal.open", { session: id, name, cmd: "exec cat" })
    for (let made = 0; made < perSessionMax; made++) await open(`t${made}`)
    await expect(open("more")).rejects.toMatchObject({ code: "limit" })
    expect((await open("t0")).isNew).toBe(false)
    await system.ask.call("terminal.close", { session: id, name: "t0" })
    expect((await open("more")).isNew).toBe(true)
    await system.ask.call("session.delete", { id })
  })

  it("refuse nonsense", async () => {
    await expect(attach("main", { session: "ses_00000000000000000000" })).rejects.toMatchObject({ code: "not_found" })
    await expect(attach("nowhere", { cwd: "/nowhere" })).rejects.toMatchObject({ code: "not_found" })
    await expect(system.ask.call("terminal.open", { session, name: "../x" })).rejects.toThrow()
  })
})
