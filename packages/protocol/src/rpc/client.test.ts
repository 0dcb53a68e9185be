import { getEventListeners, setMaxListeners } from "node:events"
import { Fault } from "@warren/base/fault.ts"
import { encodeJson, frameLimits } from "@warren/base/frame.ts"
import { eventually } from "@warren/base/testing/eventually.ts"
import { SocketPair } from "@warren/base/testing/socket-pair.ts"
import fc from "fast-check"
import { describe, expect, test, vi } from "vitest"
import { RawPeer, System, wire } from "../testing/rpc-system.ts"
import { RpcClient } from "./client.ts"
import { remote } from "./remote.ts"
import { rpcLimits } from "./wire.ts"

const outcome = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "answered",
    (thrown: unknown) => thrown,
  )

describe("RpcClient with a server", () => {
  test("10,000 interleaved requests and 100 feeds with random cancels: each answer to its own caller, nothing left", async () => {
    await using system = await System.start()
    const { client } = system
    const handles = process.getActiveResourcesInfo().length
    let answered = 0
    let cancelled = 0
    const call = async (value: number): Promise<void> => {
      const controller = new AbortController()
      const reason = { cancelled: value }
      const options = value % 5 === 0 ? { signal: controller.signal } : {}
      const work = client.call("echo.say", { value, turns: value % 7 }, options)
      if (value % 5 === 0) {
        for (let turn = (value / 5) % 4; turn > 0; turn--) await new Promise(setImmediate)
        controller.abort(reason)
      }
      try {
        expect((await work).value).toBe(value)
        answered++
      } catch (thrown) {
        expect(thrown).toBe(reason)
        cancelled++
      }
    }
    const feed = async (base: number): Promise<void> => {
      const last = base + 200
      let seen = base
      const leaveAt = base % 3 === 0 ? base + (base % 150) : last
      for await (const { seq, item } of client.feed("count.up", { after: base, last, fill: "x".repeat(base % 90) })) {
        expect([seq, item.n]).toEqual([seen + 1, ++seen])
        expect(item.fill.length).toBe(base % 90)
        if (seen === leaveAt) break
        if (base % 4 === 0) await new Promise(setImmediate)
      }
      expect(seen).toBe(Math.max(leaveAt, base + (leaveAt === base ? 200 : 0)))
    }
    const calls = Array.from({ length: 10_000 }, (_, value) => call(value))
    const feeds = Array.from({ length: 100 }, (_, index) => feed(index * 1_000))
    await Promise.all([...calls, ...feeds])
    await system.quiet()
    expect(answered + cancelled).toBe(10_000)
    expect(answered).toBeGreaterThanOrEqual(8_000)
    expect(cancelled).toBeGreaterThan(500)
    expect([client.waiting, system.connection.inFlight]).toEqual([0, 0])
    await eventually(() => process.getActiveResourcesInfo().length <= handles)
    expect(system.logged).toEqual([])
  })

  test("a call that is aborted rejects with the caller's reason, after the work has stopped", async () => {
    await using system = await System.start()
    const { answers, client } = system
    let letGo = (): void => undefined
    answers.stopping = new Promise((resolve) => (letGo = resolve))
    const controller = new AbortController()
    const reason = new Error("mine")
    const work = outcome(client.call("work.wait", {}, { signal: controller.signal, timeoutMs: 0 })).then((result) => {
      answers.events.push("rejected")
      return result
    })
    await eventually(() => answers.events.includes("started"))
    controller.abort(reason)
    // Another call passes in between: the client knows that the first has not stopped yet, not only that it has not heard.
    await client.call("echo.say", { value: 1, turns: 20 })
    expect(answers.events).toEqual(["started"])
    letGo()
    expect(await work).toBe(reason)
    expect(answers.events).toEqual(["started", "stopped", "rejected"])
    await system.quiet()
  })

  test("a call that was aborted before it began is not sent", async () => {
    await using system = await System.start()
    const work = system.client.call("work.wait", {}, { signal: AbortSignal.abort("early") })
    await expect(work).rejects.toBe("early")
    expect(system.client.waiting).toBe(0)
    await system.client.call("echo.say", { value: 1 })
    expect(system.answers.events).toEqual([])
  })

  test("a call that takes too long is a timeout, by its own limit or the caller's, and the work is stopped", async () => {
    await using system = await System.start()
    await expect(system.client.call("work.wait", {})).rejects.toMatchObject({
      code: "timeout",
      message: "work.wait took longer than 40 ms",
    })
    await expect(system.client.call("work.wait", {}, { timeoutMs: 1 })).rejects.toMatchObject({ code: "timeout" })
    expect(system.answers.events).toEqual(["started", "stopped", "started", "stopped"])
    await system.quiet()
  })

  test("a call that is both late and aborted leaves no timer", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    try {
      await using system = await System.start()
      const { answers, client } = system
      await client.call("echo.say", { value: 1 })
      let letGo = (): void => undefined
      answers.stopping = new Promise((resolve) => (letGo = resolve))
      const controller = new AbortController()
      const work = outcome(client.call("work.wait", {}, { signal: controller.signal }))
      await eventually(() => answers.events.includes("started"))
      vi.advanceTimersByTime(40)
      controller.abort("also")
      letGo()
      expect(await work).toMatchObject({ code: "timeout" })
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })

  test("work that does not stop is given up after a while, and its answer is ignored when it comes", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    try {
      await using system = await System.start()
      const { answers, client } = system
      let letGo = (): void => undefined
      answers.stopping = new Promise((resolve) => (letGo = resolve))
      const controller = new AbortController()
      const work = outcome(client.call("work.wait", {}, { signal: controller.signal, timeoutMs: 0 }))
      await eventually(() => answers.events.includes("started"))
      controller.abort("enough")
      vi.advanceTimersByTime(rpcLimits.cancelMs)
      expect(await work).toBe("enough")
      expect(client.waiting).toBe(1)
      letGo()
      await system.quiet()
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })

  test("faults arrive as they were thrown, without their causes; bugs arrive as nothing but `internal`", async () => {
    await using system = await System.start()
    const fault = (await outcome(system.client.call("fault.throw", { kind: "fault" }))) as Fault
    expect(fault).toBeInstanceOf(Fault)
    expect([fault.toData(), fault.cause]).toEqual([
      { code: "conflict", message: "no", hint: "try later", subject: "thing:1" },
      undefined,
    ])
    for (const kind of ["bug", "text", "shape"] as const) {
      const bug = (await outcome(system.client.call("fault.throw", { kind }))) as Fault
      expect(bug.code).toBe("internal")
      expect(JSON.stringify(bug.toData())).not.toContain("hunter2")
    }
    expect(system.logged.map((line) => [line["event"], line["call"]])).toEqual(
      Array.from({ length: 3 }, () => ["rpc.bug", "fault.throw"]),
    )
    expect(system.logged[0]).toMatchObject({ message: "password=hunter2", stack: expect.stringContaining("TypeError") })
  })

  test.each(["long", "huge"] as const)(
    "a fault with a %s message arrives, cut, and the connection goes on",
    async (kind) => {
      await using system = await System.start()
      const other = system.client.call("echo.say", { value: "other", turns: 50 })
      await expect(system.client.call("fault.throw", { kind })).rejects.toMatchObject({ code: "conflict" })
      expect((await other).value).toBe("other")
    },
  )

  test("an answer or an item over the limit is a fault of that request only", async () => {
    await using system = await System.start()
    const overhead = JSON.stringify({ id: 1, out: { text: "" } }).length
    const most = frameLimits.jsonBytesMax - overhead
    expect((await system.client.call("text.make", { chars: most })).text.length).toBe(most)
    await expect(system.client.call("text.make", { chars: most + 1 })).rejects.toMatchObject({ code: "limit" })
    const feed = system.client.feed("count.up", { last: 1, fill: "x".repeat(1024), times: 1024 })
    await expect(feed.next()).rejects.toMatchObject({ code: "limit" })
    expect((await system.client.call("echo.say", { value: 1 })).value).toBe(1)
    await system.quiet()
  })

  test("a request over the limit, or one that is not JSON, is refused here, and the connection goes on", async () => {
    await using system = await System.start()
    const value = "x".repeat(frameLimits.jsonBytesMax)
    await expect(system.client.call("echo.say", { value })).rejects.toMatchObject({ code: "limit" })
    await expect(system.client.call("echo.say", { value: 1n })).rejects.toThrow(TypeError)
    expect((await system.client.call("echo.say", { value: "é\u2028\ud83d\ude00" })).value).toBe("é\u2028\ud83d\ude00")
    expect(system.client.waiting).toBe(0)
  })

  test("bad input is refused by the server with the field's name", async () => {
    await using system = await System.start()
    const work = system.client.call("echo.say", { value: 1, turns: -1 })
    await expect(work).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining("turns"),
      subject: "call:echo.say",
    })
  })

  test("many large answers at once reach a client that reads", async () => {
    await using system = await System.start()
    const sizes = Array.from({ length: 40 }, (_, index) => 1_000_000 + index)
    const answers = await Promise.all(sizes.map((chars) => system.client.call("text.make", { chars })))
    expect(answers.map(({ text }) => text.length)).toEqual(sizes)
    await system.quiet()
  })

  test("many feeds of large items at once reach a client that reads", async () => {
    await using system = await System.start()
    const fill = "x".repeat(700_000)
    const read = async (): Promise<number> => {
      let seen = 0
      for await (const { item } of system.client.feed("count.up", { last: 3, fill })) seen += item.fill.length
      return seen
    }
    const seen = await Promise.all(Array.from({ length: 30 }, read))
    expect(new Set(seen)).toEqual(new Set([3 * fill.length]))
    await system.quiet()
  })

  test("a feed ends, and leaving it early stops it at the other end", async () => {
    await using system = await System.start()
    const seen: number[] = []
    for await (const { seq } of system.client.feed("count.up", { after: 7, last: 10 })) seen.push(seq)
    expect(seen).toEqual([8, 9, 10])
    for await (const { seq } of system.client.feed("count.up", { last: 1_000_000 })) if (seq === 5) break
    await system.quiet()
    expect(system.answers.events).toEqual(["feed over", "feed over"])
    expect(system.answers.produced).toBeLessThan(100_000)
  })

  test("a feed that is aborted rejects with the caller's reason, and is stopped at the other end", async () => {
    await using system = await System.start()
    const controller = new AbortController()
    const feed = system.client.feed("count.up", { last: 5, thenWaits: true }, { signal: controller.signal })
    await feed.next()
    expect(system.answers.events).toEqual([])
    controller.abort("enough")
    const drain = async (): Promise<void> => {
      for await (const _ of feed) continue
    }
    expect(await outcome(drain())).toBe("enough")
    await system.quiet()
    expect(system.answers.events).toEqual(["feed over"])
  })

  test("a reader that is too slow gets what was kept, then `resync` that says where to go on", async () => {
    await using system = await System.start()
    const feed = system.client.feed("count.up", { last: 1_000_000_000 })
    const first = await feed.next()
    let last = first.value?.seq ?? 0
    await eventually(() => system.answers.events.includes("feed over"))
    const drain = async (): Promise<void> => {
      for await (const { seq } of feed) expect(seq).toBe(++last)
    }
    const fault = (await outcome(drain())) as Fault
    expect(fault).toMatchObject({ code: "resync", hint: `read again after ${last}` })
    expect(last).toBeLessThanOrEqual(3 * rpcLimits.feedItemsMax)
    await system.quiet()
    const again = await system.client.feed("count.up", { after: last, last: last + 1 }).next()
    expect(again.value?.seq).toBe(last + 1)
  })

  test("an item of the wrong shape is a typed fault of that feed only", async () => {
    await using system = await System.start()
    const thrown = await outcome(system.client.feed("count.badly", {}).next())
    expect(thrown).toBeInstanceOf(Fault)
    expect((await system.client.call("echo.say", { value: 1 })).value).toBe(1)
  })

  test("no more than the peer takes at once are sent; the rest wait their turn", async () => {
    await using system = await System.start()
    const { client, connection, answers } = system
    const controller = new AbortController()
    // Each call listens while it is under way, and all of them are.
    setMaxListeners(rpcLimits.inFlightMax + 1, controller.signal)
    const options = { signal: controller.signal, timeoutMs: 0 }
    const work = Array.from({ length: rpcLimits.inFlightMax + 1 }, () => outcome(client.call("work.wait", {}, options)))
    await eventually(() => answers.events.length === rpcLimits.inFlightMax)
    const next = client.call("echo.say", { value: "next" }, { timeoutMs: 0 })
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
    expect([connection.inFlight, client.waiting]).toEqual([rpcLimits.inFlightMax, rpcLimits.inFlightMax + 2])
    controller.abort("enough")
    expect(new Set(await Promise.all(work))).toEqual(new Set(["enough"]))
    expect(getEventListeners(controller.signal, "abort")).toEqual([])
    expect((await next).value).toBe("next")
    expect(answers.events.filter((event) => event === "started").length).toBe(rpcLimits.inFlightMax)
    await system.quiet()
  })

  test("closing rejects what waits, at once, and stops it at the other end", async () => {
    await using system = await System.start()
    const work = outcome(system.client.call("work.wait", {}, { timeoutMs: 0 }))
    const feed = system.client.feed("count.up", { last: 1_000_000_000 })
    await feed.next()
    await eventually(() => system.answers.events.includes("started"))
    await system.client[Symbol.asyncDispose]()
    await system.client[Symbol.asyncDispose]()
    expect(await work).toMatchObject({ code: "cancelled" })
    await expect(system.client.call("echo.say", { value: 1 })).rejects.toMatchObject({ code: "cancelled" })
    await expect(system.client.feed("count.up", { last: 1 }).next()).rejects.toMatchObject({ code: "cancelled" })
    expect([system.client.isOpen, system.client.waiting]).toEqual([false, 0])
    await eventually(() => system.connection.inFlight === 0)
    expect(system.answers.events.toSorted()).toEqual(["feed over", "started", "stopped"])
    await feed.return()
  })

  test("remote has the shape of the handlers at the other end", async () => {
    await using system = await System.start()
    const plane = remote(wire, {
      client: () => Promise.resolve(system.client),
      connect: () => Promise.reject(new Error("no stream is opened here")),
    })
    const context = { signal: new AbortController().signal, caller: { name: "x" } }
    expect(await plane["echo.say"]({ value: 4, turns: 0 }, context)).toEqual({ value: 4 })
    const items = []
    for await (const item of plane["count.up"]({ after: 0, last: 2, fill: "", times: 1, thenWaits: false }, context))
      items.push(item.seq)
    expect(items).toEqual([1, 2])
  })
})

describe("RpcClient with a server that stops", () => {
  async function withPeer(work: (client: RpcClient<typeof wire>, peer: RawPeer) => Promise<void>): Promise<void> {
    await using pair = await SocketPair.make()
    const peer = new RawPeer(pair.right)
    await using client = new RpcClient(pair.left, wire)
    await work(client, peer)
  }
  const welcome = { welcome: { version: 1, build: "x", inFlightMax: 512 } }

  test("sends nothing before it is welcome, then what waited, in order", () =>
    withPeer(async (client, peer) => {
      const work = [1, 2, 3].map((value) => client.call("echo.say", { value }))
      await eventually(() => peer.messages.length === 1)
      for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
      expect(peer.messages).toEqual([{ hello: { version: 1, name: "" } }])
      peer.send(welcome)
      await eventually(() => peer.messages.length === 4)
      const ids = peer.messages.slice(1).map((message) => message["id"] as number)
      expect(new Set(ids).size).toBe(3)
      for (const id of ids.toReversed()) peer.send({ id, out: { value: `for ${id}` } })
      expect((await Promise.all(work)).map(({ value }) => value)).toEqual(ids.map((id) => `for ${id}`))
    }))

  test("takes as many waiting requests as the limit, and not one more", () =>
    withPeer(async (client) => {
      const work = Array.from({ length: rpcLimits.queuedMax }, (_, value) =>
        outcome(client.call("echo.say", { value }, { timeoutMs: 0 })),
      )
      expect(client.waiting).toBe(rpcLimits.queuedMax)
      await expect(client.call("echo.say", { value: 0 }, { timeoutMs: 0 })).rejects.toMatchObject({ code: "limit" })
      await expect(client.feed("count.up", { last: 1 }).next()).rejects.toMatchObject({ code: "limit" })
      await client[Symbol.asyncDispose]()
      expect(new Set((await Promise.all(work)).map((thrown) => (thrown as Fault).code))).toEqual(new Set(["cancelled"]))
    }))

  test("a request that is aborted while it waits is never sent", () =>
    withPeer(async (client, peer) => {
      const controller = new AbortController()
      const work = outcome(client.call("echo.say", { value: 1 }, { signal: controller.signal }))
      controller.abort("enough")
      expect(await work).toBe("enough")
      peer.send(welcome)
      const next = client.call("echo.say", { value: 2 })
      await eventually(() => peer.messages.length === 2)
      const [, request] = peer.messages
      expect(request).toMatchObject({ in: { value: 2 } })
      peer.send({ id: request?.["id"] as number, out: { value: 2 } })
      await next
      expect(client.waiting).toBe(0)
    }))

  test("a peer that does not read is not sent more than it has room for", async () => {
    await using pair = await SocketPair.make()
    pair.right.write(encodeJson(welcome))
    pair.right.pause()
    await using client = new RpcClient(pair.left, wire)
    const value = "x".repeat(100_000)
    const work = Array.from({ length: 400 }, () => outcome(client.call("echo.say", { value }, { timeoutMs: 0 })))
    let most = 0
    for (let turn = 0; turn < 200; turn++) {
      most = Math.max(most, pair.left.writableLength)
      await new Promise(setImmediate)
    }
    expect(client.waiting).toBe(400)
    expect(most).toBeLessThan(3 * value.length)
    await client[Symbol.asyncDispose]()
    await Promise.all(work)
  })

  test("a peer that goes away fails what waits", () =>
    withPeer(async (client, peer) => {
      peer.send(welcome)
      const work = outcome(client.call("echo.say", { value: 1 }))
      await eventually(() => peer.messages.length === 2)
      peer.socket.destroy()
      expect(await work).toMatchObject({ code: "unavailable" })
      expect(client.isOpen).toBe(false)
    }))

  test("a peer that never greets is given up", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    try {
      await withPeer(async (client) => {
        const work = outcome(client.call("echo.say", { value: 1 }, { timeoutMs: 0 }))
        vi.advanceTimersByTime(rpcLimits.helloMs)
        expect(await work).toMatchObject({ code: "timeout", message: "the other side did not answer the greeting" })
      })
    } finally {
      vi.useRealTimers()
    }
  })

  test("a peer that refuses the greeting is heard", () =>
    withPeer(async (client, peer) => {
      peer.send({ id: 0, fault: { code: "unavailable", message: "stopping" } })
      await expect(client.call("echo.say", { value: 1 })).rejects.toMatchObject({
        code: "unavailable",
        message: "stopping",
      })
    }))

  test.each([
    ["a fault without a message", { fault: { code: "conflict" } }],
    ["a fault that is nothing", { fault: null }],
    ["a fault with a message over the limit", { fault: { code: "conflict", message: "x".repeat(20_000) } }],
    ["an item for a call", { seq: 1, item: {} }],
    ["an end for a call", { end: true }],
    ["something unknown", { progress: 1 }],
    ["nothing", {}],
    ["an answer of the wrong shape", { out: 5 }],
  ])("a call that is answered with %s ends with a typed fault", (_, answer) =>
    withPeer(async (client, peer) => {
      peer.send(welcome)
      const work = outcome(client.call("echo.say", { value: 1 }, { timeoutMs: 0 }))
      await eventually(() => peer.messages.length === 2)
      peer.send({ id: 1, ...answer })
      expect(await work).toBeInstanceOf(Fault)
    }),
  )

  test.each([
    ["a fault without a message", { fault: { code: "conflict" } }],
    ["an answer for a feed", { out: {} }],
    ["something unknown", { progress: 1 }],
    ["an item without a number", { item: {} }],
    ["an item of the wrong shape", { seq: 1, item: 5 }],
  ])("a feed that gets %s ends with a typed fault, not as if it were over", (_, answer) =>
    withPeer(async (client, peer) => {
      peer.send(welcome)
      const work = outcome(client.feed("count.up", { last: 5 }).next())
      await eventually(() => peer.messages.length === 2)
      peer.send({ id: 1, ...answer })
      expect(await work).toBeInstanceOf(Fault)
    }),
  )

  test("a fault with a code of a newer peer reads as `internal`", () =>
    withPeer(async (client, peer) => {
      peer.send(welcome)
      const work = outcome(client.call("echo.say", { value: 1 }))
      await eventually(() => peer.messages.length === 2)
      peer.send({ id: 1, fault: { code: "teapot", message: "short", extra: true } })
      expect(await work).toMatchObject({ code: "internal", message: "short" })
    }))

  test("whatever a peer sends, every caller hears back, and nothing else breaks", async () => {
    const id = fc.oneof(fc.integer({ min: -1, max: 4 }), fc.constantFrom("1", null, 1.5, 1e300))
    const junk = fc.jsonValue({ maxDepth: 2 })
    const message = fc.oneof(
      fc.record({ id, out: junk }, { requiredKeys: [] }),
      fc.record({ id, fault: fc.oneof(junk, fc.record({ code: fc.constantFrom("limit", "x"), message: junk })) }),
      fc.record({
        id,
        seq: fc.oneof(fc.integer(), junk),
        item: fc.oneof(junk, fc.record({ n: fc.integer(), fill: fc.string() })),
      }),
      fc.record({ id, end: fc.oneof(fc.constant(true), junk) }),
      fc.constant(JSON.parse('{"__proto__":{"id":1,"out":{"value":1}},"constructor":1}') as object),
      fc.constant(welcome),
    )
    const frame = fc.oneof(
      { weight: 6, arbitrary: message.map((value) => encodeJson(value)) },
      { weight: 1, arbitrary: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)) },
      {
        weight: 2,
        arbitrary: fc.tuple(message, fc.nat(), fc.nat(255)).map(([value, place, byte]) => {
          const bytes = encodeJson(value)
          bytes[place % bytes.length] = byte
          return bytes
        }),
      },
    )
    await fc.assert(
      fc.asyncProperty(fc.boolean(), fc.array(frame, { maxLength: 12 }), async (isGreeted, frames) => {
        await using pair = await SocketPair.make()
        pair.right.on("error", () => undefined).resume()
        await using client = new RpcClient(pair.left, wire)
        const drain = async (): Promise<void> => {
          for await (const _ of client.feed("count.up", { last: 3 })) continue
        }
        const work = Promise.all(
          [client.call("echo.say", { value: 1 }), drain(), client.call("text.make", { chars: 1 })].map(outcome),
        )
        if (isGreeted) pair.right.write(encodeJson(welcome))
        for (const bytes of frames) pair.right.write(bytes)
        pair.right.end()
        for (const result of await work) if (result !== "answered") expect(result).toBeInstanceOf(Fault)
        // Everybody may have been answered before the end is seen.
        await eventually(() => !client.isOpen)
        expect(client.waiting).toBe(0)
      }),
      { numRuns: 150 },
    )
    expect(({} as Record<string, unknown>)["out"]).toBeUndefined()
  })
})
