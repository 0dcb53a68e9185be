import { once } from "node:events"
import { encodeJson, encodeStream, frameLimits, streamTags } from "@warren/base/frame.ts"
import { eventually } from "@warren/base/testing/eventually.ts"
import { keptBytes } from "@warren/base/testing/kept-bytes.ts"
import { settles } from "@warren/base/testing/settles.ts"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { RawPeer, Served, System } from "../testing/rpc-system.ts"
import { spoiledFrame } from "../testing/spoiled-frame.ts"
import { rpcLimits } from "./wire.ts"

const mebibyte = 1024 * 1024

async function greeted(work: (peer: RawPeer, served: Served) => Promise<void>): Promise<void> {
  await using served = await Served.start()
  await work(new RawPeer(served.peer).hello(), served)
}

const echo = (id: unknown, value: unknown = id): object => ({ id, call: "echo.say", in: { value } })

describe("RpcConnection", () => {
  test("greets with its version, its build and what it takes at once", () =>
    greeted(async (peer) => {
      peer.send(echo(1))
      await peer.answer(1)
      expect(peer.messages[0]).toEqual({ welcome: { version: 1, build: "test", inFlightMax: rpcLimits.inFlightMax } })
    }))

  test("answers a newer peer in the version it knows", async () => {
    await using served = await Served.start()
    const peer = new RawPeer(served.peer).send({ hello: { version: 99, name: "future", more: true } })
    await eventually(() => peer.messages.length === 1)
    expect(peer.messages[0]).toMatchObject({ welcome: { version: 1 } })
  })

  test("refuses calls before hello, each by its id, and goes on", async () => {
    await using served = await Served.start()
    const peer = new RawPeer(served.peer).send(echo(7), { id: 8, cancel: true }, { hello: { version: 0 } })
    expect(await peer.answer(7)).toMatchObject({ fault: { code: "unsupported", message: "say hello first" } })
    expect(await peer.answer(8)).toMatchObject({ fault: { code: "unsupported" } })
    expect(await peer.answer(0)).toMatchObject({ fault: { code: "unsupported" } })
    peer.hello().send(echo(9))
    expect(await peer.answer(9)).toEqual({ id: 9, out: { value: 9 } })
    expect(served.answers.events).toEqual([])
  })

  test.each([
    ["an unknown call", { id: 3, call: "no.such", in: {} }, 3, "unsupported"],
    ["a call named like a property", { id: 3, call: "__proto__", in: {} }, 3, "unsupported"],
    ["a call named like a method", { id: 3, call: "constructor", in: {} }, 3, "unsupported"],
    ["input that is missing", { id: 3, call: "echo.say" }, 3, "invalid"],
    ["input that is a list", { id: 3, call: "echo.say", in: [] }, 3, "invalid"],
    ["input of the wrong shape", { id: 3, call: "text.make", in: { chars: "x" } }, 3, "invalid"],
    ["a name that is too long", { id: 3, call: "x".repeat(129), in: {} }, 3, "invalid"],
    ["no name", { id: 3, in: {} }, 3, "invalid"],
    ["no id", { call: "echo.say", in: {} }, 0, "invalid"],
    ["id 0", echo(0), 0, "invalid"],
    ["a negative id", echo(-1), -1, "invalid"],
    ["half an id", echo(1.5), 0, "invalid"],
    ["a text as id", echo("3"), 0, "invalid"],
    ["an id that is too large", echo(1e300), 0, "invalid"],
    ["a second hello", { hello: { version: 1 } }, 0, "invalid"],
    ["a cancellation that is none", { id: 3, cancel: "yes" }, 3, "invalid"],
    ["nothing", {}, 0, "invalid"],
  ])("answers %s with a typed fault, and goes on", (_, message, id, code) =>
    greeted(async (peer, served) => {
      peer.send(message, echo(4))
      expect(await peer.answer(id)).toMatchObject({ fault: { code } })
      expect(await peer.answer(4)).toEqual({ id: 4, out: { value: 4 } })
      expect(served.connection.inFlight).toBe(0)
    }),
  )

  test.each([
    [
      "invalid UTF-8",
      Buffer.concat([Buffer.from([0, 0, 0, 7]), Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])]),
      "invalid",
    ],
    ["broken JSON", Buffer.concat([Buffer.from([0, 0, 0, 2]), Buffer.from("{x")]), "invalid"],
    ["too much nesting", encodeNested(1_000), "invalid"],
    ["a stream frame", encodeStream(streamTags.stdin, Buffer.from("x")), "unsupported"],
  ])("answers %s with a typed fault of the connection, and goes on", (_, bytes, code) =>
    greeted(async (peer) => {
      peer.socket.write(bytes)
      peer.send(echo(4))
      expect(await peer.answer(0)).toMatchObject({ fault: { code } })
      expect(await peer.answer(4)).toEqual({ id: 4, out: { value: 4 } })
    }),
  )

  test.each([
    ["a length of 0", Buffer.alloc(4), "invalid"],
    ["a length of 2^31", Buffer.from([0x80, 0, 0, 0]), "limit"],
    ["a length one over the limit", lengthOf(frameLimits.jsonBytesMax + 1), "limit"],
    ["an unknown tag", Buffer.from([0, 0, 0, 2, 9, 9]), "invalid"],
    ["10 MB of brackets", Buffer.concat([lengthOf(10 * mebibyte), Buffer.alloc(10 * mebibyte, "[")]), "limit"],
    ["10 MB of brackets and no length", Buffer.alloc(10 * mebibyte, "["), "limit"],
    ["a frame that is cut off", encodeJson(echo(5)).subarray(0, 9), "unavailable"],
  ])("closes on %s, stops what runs, and says why in the log", (_, bytes, code) =>
    greeted(async (peer, served) => {
      peer.send({ id: 1, call: "work.wait", in: {} })
      await eventually(() => served.answers.events.includes("started"))
      peer.socket.end(bytes)
      await eventually(() => peer.isClosed && served.connection.inFlight === 0)
      expect(served.answers.events).toEqual(["started", "stopped"])
      expect(served.logged).toMatchObject([{ event: "rpc.closed", code }])
    }),
  )

  test("takes a message as long as the limit", () =>
    greeted(async (peer) => {
      const overhead = JSON.stringify(echo(1, "")).length
      peer.send(echo(1, "x".repeat(frameLimits.jsonBytesMax - overhead)))
      // One byte shorter than the request: the answer has room for all of it.
      expect(await peer.answer(1)).toMatchObject({ out: { value: expect.stringMatching(/^x+$/) } })
    }))

  test("keys named `__proto__` change nothing", () =>
    greeted(async (peer) => {
      const body = Buffer.from(
        '{"id":1,"call":"echo.say","in":{"value":{"__proto__":{"x":1}},"__proto__":{"turns":9}},"__proto__":{"cancel":true}}',
      )
      peer.socket.write(Buffer.concat([lengthOf(body.length), body]))
      expect(await peer.answer(1)).toHaveProperty("out")
      expect(({} as Record<string, unknown>)["x"]).toBeUndefined()
      expect(({} as Record<string, unknown>)["turns"]).toBeUndefined()
    }))

  test("an id that is already running closes the connection: its answer could not be told from the other's", () =>
    greeted(async (peer, served) => {
      peer.send({ id: 1, call: "work.wait", in: {} }, echo(1))
      await eventually(() => peer.isClosed && served.connection.inFlight === 0)
      expect(served.answers.events).toEqual(["started", "stopped"])
      expect(served.logged).toMatchObject([{ code: "invalid", message: "request 1 is already running" }])
    }))

  test("an id may be used again once it was answered", () =>
    greeted(async (peer) => {
      peer.send(echo(1, "a"))
      await peer.answer(1)
      peer.send(echo(1, "b"))
      await eventually(() => peer.messages.length === 3)
      expect(peer.messages.slice(1).map((message) => message["out"])).toEqual([{ value: "a" }, { value: "b" }])
    }))

  test("cancelling what is unknown or over is no fault, and reaches nobody else", () =>
    greeted(async (peer, served) => {
      peer.send({ id: 1, call: "work.wait", in: {} }, { id: 99, cancel: true }, echo(2))
      await peer.answer(2)
      peer.send({ id: 2, cancel: true }, echo(3))
      await peer.answer(3)
      expect(served.answers.events).toEqual(["started"])
      peer.send({ id: 1, cancel: true }, { id: 1, cancel: true })
      expect(await peer.answer(1)).toEqual({ id: 1, fault: { code: "cancelled", message: "the caller cancelled" } })
      expect(peer.messages.filter((message) => message["id"] === 99)).toEqual([])
    }))

  test("works on as much at once as the limit, and refuses one more by its id", () =>
    greeted(async (peer, served) => {
      const wait = (id: number): object => ({ id, call: "work.wait", in: {} })
      peer.send(...Array.from({ length: rpcLimits.inFlightMax }, (_, index) => wait(index + 1)))
      await eventually(() => served.connection.inFlight === rpcLimits.inFlightMax)
      peer.send(wait(1_000))
      expect(await peer.answer(1_000)).toMatchObject({ fault: { code: "limit" } })
      expect(peer.messages.length).toBe(2)
      peer.send({ id: 1, cancel: true })
      await peer.answer(1)
      await eventually(() => served.connection.inFlight === rpcLimits.inFlightMax - 1)
      peer.send(echo(1_001))
      expect(await peer.answer(1_001)).toHaveProperty("out")
    }))

  test("a feed for a peer that stops reading stops too, and goes on when it reads", async () => {
    await using served = await Served.start()
    served.peer.pause()
    served.peer.write(Buffer.concat([encodeJson({ hello: { version: 1 } }), encodeJson(endless(1))]))
    await eventually(() => served.answers.produced > 0)
    await settles(() => served.answers.produced)
    const produced = served.answers.produced
    expect(served.socket.writableLength).toBeLessThan(64 * 1024)
    expect(served.connection.inFlight).toBe(1)
    served.peer.resume()
    await eventually(() => served.answers.produced > produced + 1_000)
  })

  test("100 feeds for a peer that stops reading hold no memory, and it is not cut off", async () => {
    await using served = await Served.start()
    served.peer.pause()
    const before = keptBytes()
    const feeds = Array.from({ length: 100 }, (_, index) => encodeJson(endless(index + 1)))
    served.peer.write(Buffer.concat([encodeJson({ hello: { version: 1 } }), ...feeds]))
    await eventually(() => served.connection.inFlight === 100)
    await settles(() => served.answers.produced)
    expect(served.socket.writableLength).toBeLessThan(64 * 1024)
    expect(keptBytes() - before).toBeLessThan(8 * mebibyte)
    expect(served.socket.destroyed).toBe(false)
  })

  test("calls of a peer that does not read their answers are refused over the limit, and it is cut off in the end", async () => {
    await using served = await Served.start()
    served.peer.on("error", () => undefined).pause()
    const before = keptBytes()
    let most = 0
    let lastId = 0
    served.peer.write(encodeJson({ hello: { version: 1 } }))
    // Answers wait for room; refusals do not, and these are as long as refusals get.
    const unknown = (): object => ({ id: ++lastId, call: "\u0001".repeat(64), in: {} })
    const ask = (): Buffer =>
      Buffer.concat([...Array(200).keys()].map((n) => encodeJson(n % 2 === 0 ? unknown() : echo(++lastId))))
    while (!served.socket.destroyed) {
      if (!served.peer.writableNeedDrain) served.peer.write(ask())
      most = Math.max(most, served.socket.writableLength)
      await new Promise(setImmediate)
    }
    expect(most).toBeLessThanOrEqual(16 * mebibyte + frameLimits.jsonBytesMax)
    expect(served.logged).toMatchObject([{ event: "rpc.closed", code: "limit", message: "the peer does not read" }])
    await eventually(() => served.connection.inFlight === 0)
    served.peer.destroy()
    await settles(() => served.peer.destroyed)
    expect(keptBytes() - before).toBeLessThan(64 * mebibyte)
  })

  test("cancelling a feed whose peer does not read ends it", async () => {
    await using served = await Served.start()
    served.peer.pause()
    served.peer.write(Buffer.concat([encodeJson({ hello: { version: 1 } }), encodeJson(endless(1))]))
    await settles(() => served.answers.produced)
    served.peer.write(encodeJson({ id: 1, cancel: true }))
    await eventually(() => served.connection.inFlight === 0)
    expect(served.answers.events).toEqual(["feed over"])
  })

  test("a peer that goes away stops all of its work", () =>
    greeted(async (peer, served) => {
      peer.send({ id: 1, call: "work.wait", in: {} }, { id: 2, call: "work.wait", in: {} }, endless(3))
      await eventually(() => served.answers.events.length === 2 && served.answers.produced > 0)
      peer.socket.destroy()
      await eventually(() => served.connection.inFlight === 0)
      expect(served.answers.events.toSorted()).toEqual(["feed over", "started", "started", "stopped", "stopped"])
    }))

  test("closing stops what runs, waits until it has, and takes nothing new meanwhile", async () => {
    await using system = await System.start()
    const { answers, client, connection } = system
    let letGo = (): void => undefined
    answers.stopping = new Promise((resolve) => (letGo = resolve))
    const work = client.call("work.wait", {}, { timeoutMs: 0 }).catch((thrown: unknown) => thrown)
    await eventually(() => answers.events.includes("started"))
    const closing = connection[Symbol.asyncDispose]().then(() => answers.events.push("closed"))
    await expect(client.call("echo.say", { value: 1 })).rejects.toMatchObject({ code: "unavailable" })
    expect(answers.events).toEqual(["started"])
    letGo()
    await closing
    expect(answers.events).toEqual(["started", "stopped", "closed"])
    expect(await work).toMatchObject({ code: "unavailable" })
    await connection[Symbol.asyncDispose]()
  })

  test("closing does not wait for a peer that does not read", async () => {
    await using served = await Served.start()
    served.peer.pause()
    served.peer.write(Buffer.concat([encodeJson({ hello: { version: 1 } }), encodeJson(endless(1))]))
    await settles(() => served.answers.produced)
    await served.connection[Symbol.asyncDispose]()
    expect([served.connection.inFlight, served.answers.events]).toEqual([0, ["feed over"]])
  })

  test("whatever a peer sends is answered with typed faults or ends the connection, and the next peer is served", async () => {
    const id = fc.oneof(fc.integer({ min: -1, max: 5 }), fc.jsonValue({ maxDepth: 0 }))
    const junk = fc.jsonValue({ maxDepth: 3 })
    const message = fc.oneof(
      fc.record(
        {
          id,
          call: fc.oneof(
            fc.constantFrom("echo.say", "count.up", "text.make", "fault.throw", "__proto__", "toString"),
            fc.string(),
          ),
          in: junk,
        },
        { requiredKeys: [] },
      ),
      fc.record({ id, call: fc.constant("count.up"), in: fc.record({ last: fc.nat(50), fill: fc.string() }) }),
      fc.record({
        id,
        call: fc.constant("fault.throw"),
        in: fc.record({ kind: fc.constantFrom("bug", "shape", "huge", "bigint") }),
      }),
      fc.record({ id, cancel: fc.oneof(fc.constant(true), junk) }),
      fc.dictionary(fc.constantFrom("hello", "id", "__proto__", "call", "in", "welcome"), junk),
    )
    const frame = spoiledFrame(message, 60)
    await fc.assert(
      fc.asyncProperty(fc.boolean(), fc.array(frame, { maxLength: 15 }), async (isGreeted, frames) => {
        await using served = await Served.start()
        const peer = new RawPeer(served.peer)
        if (isGreeted) peer.hello()
        for (const bytes of frames) peer.socket.write(bytes)
        peer.socket.end()
        await once(peer.socket, "close")
        await eventually(() => served.connection.inFlight === 0)
        for (const answer of peer.messages) {
          const kinds = ["welcome", "out", "fault", "item", "end"].filter((kind) => Object.hasOwn(answer, kind))
          expect(kinds.length).toBe(1)
          if (answer["fault"])
            expect(answer["fault"]).toMatchObject({ code: expect.any(String), message: expect.any(String) })
        }
      }),
      { numRuns: 150 },
    )
    expect(({} as Record<string, unknown>)["call"]).toBeUndefined()
  })
})

function endless(id: number): object {
  return { id, call: "count.up", in: { last: 1_000_000_000, fill: "x".repeat(1_000) } }
}

function lengthOf(bytes: number): Buffer {
  const header = Buffer.alloc(4)
  header.writeUInt32BE(bytes)
  return header
}

function encodeNested(depth: number): Buffer {
  const body = Buffer.from(`{"id":1,"call":"echo.say","in":{"value":${"[".repeat(depth)}${"]".repeat(depth)}}}`)
  return Buffer.concat([lengthOf(body.length), body])
}
