import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { encode, Init, type Json, type Wire } from "./client.ts"

let init: Init
beforeAll(async () => void (init = await Init.start()))
afterAll(() => init[Symbol.asyncDispose]())

async function detached(script: string, more: Json = {}): Promise<number> {
  const { events } = await init.sh(script, { detached: true, ...more })
  expect(events).toHaveLength(1)
  expect(events[0]).toMatchObject({ ev: "started" })
  return Number(events[0]?.["pid"])
}

const ended = (pid: number): Promise<unknown> =>
  init.settle(
    async () => (await init.call({ op: "ps" })).last["processes"] as Json[],
    (list) => list.some((one) => one["pid"] === pid && one["exit"] !== null),
  )

describe("detached processes", () => {
  it("live on, are listed, and can be attached to more than once", async () => {
    const pid = await detached("echo one; echo two >&2; exit 4")
    await ended(pid)
    for (let i = 0; i < 2; i++) {
      const result = await init.call({ op: "attach", pid })
      expect(result.events[0]).toEqual({ ev: "attached", pid, from: 0, dropped: 0, running: false })
      expect([result.out, result.err]).toEqual(["one\n", "two\n"])
      expect(result.last).toMatchObject({ ev: "exit", code: 4, outputBytes: 8 })
      expect(result.events).toHaveLength(2)
    }
    const list = (await init.call({ op: "ps" })).last["processes"] as Json[]
    expect(list.find((one) => one["pid"] === pid)).toMatchObject({
      argv: ["/bin/sh", "-c", "echo one; echo two >&2; exit 4"],
      detached: true,
      running: false,
      shell: null,
      exit: { code: 4 },
    })
  })

  it("are followed from any byte", async () => {
    const pid = await detached("printf 0123456789; sleep 1000")
    const follow = async (after: number): Promise<[Json, Wire]> => {
      const wire = init.open({ op: "attach", pid, after })
      return [await wire.event(), wire]
    }
    await init.settle(
      async () => {
        using wire = (await follow(0))[1]
        return await wire.until("0123456789")
      },
      () => true,
    )
    const [event, wire] = await follow(4)
    expect(event).toMatchObject({ from: 4, dropped: 0, running: true })
    expect(await wire.until("9")).toBe("456789")
    const [late, other] = await follow(1000)
    expect(late).toMatchObject({ from: 10, running: true })
    expect((await init.call({ op: "kill", pid, name: "SIGKILL" })).last).toEqual({ ev: "ok" })
    for (const each of [wire, other])
      expect((await each.all()).last).toMatchObject({ ev: "exit", signal: "SIGKILL", reason: "signal" })
  })

  it("wait for a reader that wants every byte, and go on without it", async () => {
    const bytes = 6 * 1024 * 1024
    const script = `read go; head -c ${bytes} /dev/zero | tr '\\0' x; echo end`
    const run = (): Promise<number> => detached(script, { stdin: true, replayBytes: 256 * 1024 })
    const pid = await run()
    using wire = init.open({ op: "attach", pid, hold: true })
    expect(await wire.event()).toMatchObject({ ev: "attached", dropped: 0 })
    wire.socket.pause()
    using feeder = init.open({ op: "attach", pid })
    await feeder.event()
    feeder.socket.write(encode(Buffer.from("\x01go\n")))
    // Another one reads as fast as it can, and gets no further than the slow one lets the program go.
    await feeder.until("x".repeat(4096))
    expect(
      ((await init.call({ op: "ps" })).last["processes"] as Json[]).find((one) => one["pid"] === pid),
    ).toMatchObject({
      running: true,
    })
    wire.socket.resume()
    const all = await wire.all()
    expect(all.events.filter(({ ev }) => ev === "resync")).toEqual([])
    expect(all.out.length).toBe(bytes + 4)
    const early = await detached(`head -c ${bytes} /dev/zero | tr '\\0' x; echo end`, {
      hold: true,
      replayBytes: 256 * 1024,
    })
    const first = await init.call({ op: "attach", pid: early, hold: true })
    expect([first.out.length, first.events[0]?.["dropped"]]).toEqual([bytes + 4, 0])
    const other = await run()
    {
      using gone = init.open({ op: "attach", pid: other, hold: true })
      await gone.event()
      gone.socket.pause()
      using starter = init.open({ op: "attach", pid: other })
      await starter.event()
      starter.socket.write(encode(Buffer.from("\x01go\n")))
      await starter.until("x".repeat(4096))
    }
    await ended(other)
  })

  it("keep exactly replayBytes", async () => {
    const at = await detached("printf 0123456789", { replayBytes: 10 })
    const over = await detached("printf 0123456789a", { replayBytes: 10 })
    const none = await detached("printf 0123456789", { replayBytes: 0 })
    for (const pid of [at, over, none]) await ended(pid)
    const all = await init.call({ op: "attach", pid: at })
    expect([all.out, all.events[0]?.["dropped"]]).toEqual(["0123456789", 0])
    const cut = await init.call({ op: "attach", pid: over })
    expect([cut.out, cut.events[0]?.["from"], cut.events[0]?.["dropped"]]).toEqual(["123456789a", 1, 1])
    expect((await init.call({ op: "attach", pid: none })).events[0]).toMatchObject({ from: 10, dropped: 10 })
    expect((await init.sh("true", { detached: true, replayBytes: 8 * 1024 * 1024 })).last).toMatchObject({
      ev: "started",
    })
    expect((await init.sh("true", { detached: true, replayBytes: 8 * 1024 * 1024 + 1 })).last).toMatchObject({
      code: "invalid",
    })
  })

  it("take input from attachers", async () => {
    const pid = await detached("while read x; do echo got $x; done; echo over", { stdin: true })
    using wire = init.open({ op: "attach", pid })
    await wire.event()
    wire.bytes("a\n")
    await wire.until("got a\n")
    using second = init.open({ op: "attach", pid })
    second.bytes("b\n")
    await wire.until("got b\n")
    second.send({ op: "eof" })
    expect((await wire.all()).out).toBe("over\n")
  })

  it("outlive their attachers", async () => {
    const pid = await detached("read x; echo got $x", { stdin: true })
    const first = init.open({ op: "attach", pid })
    await first.event()
    first.socket.destroy()
    using second = init.open({ op: "attach", pid }).bytes("later\n")
    expect((await second.all()).out).toBe("got later\n")
  })

  it("do not wait for a slow attacher, who is told what it missed", async () => {
    const pid = await detached("read x; head -c 3000000 /dev/zero; printf end", { stdin: true, replayBytes: 100_000 })
    using slow = init.open({ op: "attach", pid })
    await slow.event()
    slow.socket.pause()
    slow.bytes("go\n")
    await ended(pid)
    slow.socket.resume()
    const result = await slow.all()
    const missed = result.events
      .filter((event) => event["ev"] === "resync")
      .reduce((sum, event) => sum + Number(event["dropped"]), 0)
    expect(missed).toBeGreaterThan(0)
    expect(missed + result.bytes().length).toBe(3_000_003)
    expect(result.out.endsWith("end")).toBe(true)
    expect(result.last).toMatchObject({ ev: "exit", code: 0 })
  })

  it("have at most 16 attachers", async () => {
    const pid = await detached("sleep 1000")
    const wires = Array.from({ length: 16 }, () => init.open({ op: "attach", pid }))
    for (const wire of wires) expect(await wire.event()).toMatchObject({ ev: "attached" })
    expect((await init.call({ op: "attach", pid })).last).toMatchObject({ ev: "fault", code: "limit" })
    wires[0]?.socket.destroy()
    await init.settle(
      async () => {
        using wire = init.open({ op: "attach", pid })
        return await wire.event()
      },
      (event) => event["ev"] === "attached",
    )
    for (const wire of wires) wire.socket.destroy()
    await init.call({ op: "kill", pid, name: "SIGKILL" })
  })

  it("time out and are limited like others", async () => {
    const slow = await detached("sleep 1000", { timeoutMs: 50 })
    await ended(slow)
    expect((await init.call({ op: "attach", pid: slow })).last).toMatchObject({ reason: "timeout" })
    const loud = await detached("yes", { outputBytesMax: 1000 })
    await ended(loud)
    expect((await init.call({ op: "attach", pid: loud })).last).toMatchObject({ reason: "limit", outputBytes: 1000 })
  })

  it("with a terminal are resized by attachers", async () => {
    const pid = await detached("read x; stty size", { pty: { cols: 80, rows: 24 } })
    using wire = init.open({ op: "attach", pid }).send({ op: "resize", cols: 120, rows: 50 }).bytes("\n")
    const result = await wire.all()
    expect(result.out).toContain("50 120")
    expect(result.tags).toEqual([4])
  })

  it("are not found under other numbers, and only the detached can be attached to", async () => {
    expect((await init.call({ op: "attach", pid: 1 })).last).toMatchObject({ code: "not_found" })
    expect((await init.call({ op: "kill", pid: 1, name: "SIGTERM" })).last).toMatchObject({ code: "not_found" })
    using wire = init.open({ op: "spawn", argv: ["sleep", "1000"] })
    const { pid } = await wire.event()
    expect((await init.call({ op: "attach", pid })).last).toMatchObject({ code: "conflict" })
    expect((await init.call({ op: "kill", pid, name: "NOPE" })).last).toMatchObject({ code: "invalid" })
    expect((await init.call({ op: "kill", pid, name: "SIGUSR1" })).last).toEqual({ ev: "ok" })
    expect(await wire.event()).toMatchObject({ ev: "exit", signal: "SIGUSR1" })
  })

  it("are remembered up to 256 after their end", async () => {
    await using other = await Init.start()
    const pids: number[] = []
    for (let i = 0; i < 257; i++) {
      const { last } = await other.call({ op: "spawn", argv: ["true"], detached: true })
      pids.push(Number(last["pid"]))
    }
    const list = await other.settle(
      async () => (await other.call({ op: "ps" })).last["processes"] as Json[],
      (all) => all.every((one) => one["exit"] !== null),
    )
    expect(list).toHaveLength(256)
    expect((await other.call({ op: "attach", pid: pids[256] })).last).toMatchObject({ ev: "exit" })
  })
})
