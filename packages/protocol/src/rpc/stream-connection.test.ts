import { Fault } from "@warren/base/fault.ts"
import { encodeJson, encodeStream, frameLimits, streamTags } from "@warren/base/frame.ts"
import { eventually } from "@warren/base/testing/eventually.ts"
import { SocketPair } from "@warren/base/testing/socket-pair.ts"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { Chunk } from "../conversation.ts"
import { piped, servedRaw, thrownBy, type Mode, type Pipe } from "../testing/piped.ts"
import { RawPeer, Served, wire } from "../testing/rpc-system.ts"
import { openStream } from "./stream.ts"

describe("the connection of a stream", () => {
  const open = (id = 1, mode: Mode = "stubborn"): object => ({ id, open: "pipe.open", in: { mode } })

  test.each([
    ["a call", { id: 2, call: "echo.say", in: { value: 1 } }],
    ["another stream", open(2)],
    ["a second hello", { hello: { version: 1 } }],
    ["a message without words", { id: 1 }],
    ["nothing", {}],
  ])("takes nothing else: %s ends it", (_, message) =>
    servedRaw(async (peer, served) => {
      peer.send(open(), message)
      await eventually(() => peer.isClosed)
      expect(peer.messages.at(-1)).toMatchObject({ id: 1, fault: { code: "invalid" } })
      expect(peer.messages.filter((answer) => "out" in answer)).toEqual([])
      expect(served.answers.events.filter((event) => event !== "opened")).toEqual(["aborted", "disposed"])
    }),
  )

  test("is closed when the stream is over, after everything it had to say", () =>
    servedRaw(async (peer) => {
      peer.send(open(1, "echo"))
      for (let n = 0; n < 4; n++) peer.socket.write(encodeStream(streamTags.stdin, Buffer.alloc(200_000, n)))
      peer.send({ id: 1, say: { op: "last" } }, { id: 1, say: { op: "eof" } })
      await eventually(() => peer.isClosed)
      const bytes = Buffer.concat(peer.chunks.map((chunk) => chunk.bytes))
      expect(bytes.equals(Buffer.concat([0, 1, 2, 3].map((n) => Buffer.alloc(200_000, n))))).toBe(true)
      expect(new Set(peer.chunks.map((chunk) => chunk.tag))).toEqual(new Set([streamTags.stdout]))
      expect(peer.messages.slice(-2)).toEqual([
        { id: 1, say: { ev: "last" } },
        { id: 1, end: true },
      ])
    }))

  test("hears a cancellation, and of one that crossed the end", () =>
    servedRaw(async (peer, served) => {
      peer.send(open(), { id: 7, cancel: true })
      await eventually(() => served.answers.events.includes("opened"))
      peer.send({ id: 1, cancel: true }, { id: 1, cancel: true })
      await eventually(() => peer.isClosed)
      expect(peer.messages.at(-1)).toMatchObject({ id: 1, fault: { code: "cancelled" } })
      expect(served.answers.events).toEqual(["opened", "aborted", "disposed"])
    }))

  test("must have no call running", () =>
    servedRaw(async (peer, served) => {
      peer.send({ id: 1, call: "work.wait", in: {} }, open(2))
      expect(await peer.answer(2)).toMatchObject({ fault: { code: "invalid" } })
      expect(served.connection.inFlight).toBe(1)
      peer.send({ id: 1, cancel: true })
      await peer.answer(1)
      peer.send({ id: 3, open: "pipe.open", in: {} })
      expect(await peer.answer(3)).toEqual({ id: 3, opened: true })
    }))

  test.each([
    ["a stream nobody knows", { id: 1, open: "no.such", in: {} }, "unsupported"],
    ["one named like a property", { id: 1, open: "__proto__", in: {} }, "unsupported"],
    ["a call", { id: 1, open: "echo.say", in: { value: 1 } }, "unsupported"],
    ["a feed", { id: 1, open: "count.up", in: { last: 1 } }, "unsupported"],
    ["no input", { id: 1, open: "pipe.open" }, "invalid"],
    ["a stream that is called", { id: 1, call: "pipe.open", in: {} }, "unsupported"],
  ])("refuses to open %s, and goes on", (_, message, code) =>
    servedRaw(async (peer) => {
      peer.send(message)
      expect(await peer.answer(1)).toMatchObject({ fault: { code } })
      peer.send({ id: 2, call: "echo.say", in: { value: 2 } })
      expect(await peer.answer(2)).toEqual({ id: 2, out: { value: 2 } })
    }),
  )

  test("takes no bytes before it is open, and then those that came with the opening", () =>
    servedRaw(async (peer) => {
      peer.socket.write(encodeStream(streamTags.stdin, Buffer.from("early")))
      expect(await peer.answer(0)).toMatchObject({ fault: { code: "unsupported" } })
      peer.socket.write(
        Buffer.concat([encodeJson(open(1, "echo")), encodeStream(streamTags.stdin, Buffer.from("in time"))]),
      )
      await eventually(() => peer.chunks.length === 1)
      expect(peer.chunks[0]?.bytes.toString()).toBe("in time")
    }))

  test.each([
    ["bytes as long as the limit", frameLimits.streamBytesMax - 1, true],
    ["bytes one over the limit", frameLimits.streamBytesMax, false],
  ])("%s", (_, bytes, isTaken) =>
    servedRaw(async (peer, served) => {
      peer.send(open(1, "echo"))
      const header = Buffer.alloc(5, streamTags.stdin)
      header.writeUInt32BE(bytes + 1)
      peer.socket.write(Buffer.concat([header, Buffer.alloc(bytes, 1)]))
      const echoed = (): number => peer.chunks.reduce((sum, chunk) => sum + chunk.bytes.length, 0)
      await eventually(() => echoed() === bytes || peer.isClosed)
      expect(echoed()).toBe(isTaken ? bytes : 0)
      if (!isTaken) expect(served.logged).toMatchObject([{ event: "rpc.closed", code: "limit" }])
    }),
  )

  test("a message as long as the limit is carried, one byte more is refused here", () =>
    piped("echo", async (pipe) => {
      // The echo says `ev` where `op` was: as long again, and with the same frame around it.
      const overhead = JSON.stringify({ id: 1, say: { op: "" } }).length
      const longest = "x".repeat(frameLimits.jsonBytesMax - overhead)
      pipe.send({ op: longest })
      expect(await pipe.next()).toEqual({ ev: longest })
      expect(() => pipe.send({ op: `${longest}x` })).toThrow(expect.objectContaining({ code: "limit" }))
    }))

  test("whatever a caller sends on it, its handler is disposed once and the connection is over", async () => {
    const junk = fc.jsonValue({ maxDepth: 2 })
    const message = fc.oneof(
      fc.record({ id: fc.integer({ min: -1, max: 3 }), say: fc.oneof(junk, fc.record({ op: fc.string() })) }),
      fc.record({ id: fc.constantFrom(1, 2), cancel: fc.oneof(fc.constant(true), junk) }),
      fc.record({ id: fc.constantFrom(1, 2), open: fc.constantFrom("pipe.open", "echo.say"), in: junk }),
      fc.dictionary(fc.constantFrom("id", "say", "end", "opened", "held", "__proto__"), junk),
    )
    const frame = fc.oneof(
      { weight: 4, arbitrary: message.map(encodeJson) },
      {
        weight: 3,
        arbitrary: fc.uint8Array({ maxLength: 300 }).map((bytes) => encodeStream(streamTags.stdin, bytes)),
      },
      { weight: 1, arbitrary: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)) },
    )
    const mode = fc.constantFrom<Mode>("echo", "flood", "deaf", "stubborn", "fails", "lies", "ends", "slow", "missing")
    await fc.assert(
      fc.asyncProperty(mode, fc.array(frame, { maxLength: 12 }), async (given, frames) => {
        await using served = await Served.start()
        const peer = new RawPeer(served.peer).hello().send(open(1, given))
        for (const bytes of frames) peer.socket.write(bytes)
        peer.socket.end()
        await eventually(() => peer.isClosed && served.connection.inFlight === 0)
        const { events } = served.answers
        const count = (name: string): number => events.filter((event) => event === name).length
        expect(count("disposed")).toBe(count("opened"))
        expect(count("opened")).toBeLessThanOrEqual(1)
      }),
      { numRuns: 150 },
    )
  })

  test("whatever a server sends on it, the caller gets what its contract says, the end, or a fault", async () => {
    const junk = fc.jsonValue({ maxDepth: 2 })
    const message = fc.oneof(
      fc.record({ id: fc.constantFrom(0, 1, 2), say: fc.oneof(junk, fc.record({ ev: fc.string() })) }),
      fc.record({ id: fc.constant(1), fault: fc.oneof(junk, fc.record({ code: fc.string(), message: fc.string() })) }),
      fc.record({ id: fc.constant(1), end: fc.oneof(fc.constant(true), junk) }),
      fc.record({ id: fc.constant(1), held: fc.oneof(fc.constant(true), junk) }),
      fc.constant({ id: 1, opened: true }),
      fc.constant(JSON.parse('{"__proto__":{"say":{"ev":"x"}}}') as object),
    )
    const frame = fc.oneof(
      { weight: 5, arbitrary: message.map(encodeJson) },
      {
        weight: 2,
        arbitrary: fc.uint8Array({ maxLength: 300 }).map((bytes) => encodeStream(streamTags.stdout, bytes)),
      },
      { weight: 1, arbitrary: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)) },
    )
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 2 }), fc.array(frame, { maxLength: 12 }), async (greeting, frames) => {
        await using pair = await SocketPair.make()
        pair.right.on("error", () => undefined).resume()
        const opening = openStream(pair.left, wire, "pipe.open", {})
        if (greeting > 0) pair.right.write(encodeJson({ welcome: { version: 1, build: "x", inFlightMax: 1 } }))
        if (greeting > 1) pair.right.write(encodeJson({ id: 1, opened: true }))
        for (const bytes of frames) pair.right.write(bytes)
        pair.right.end()
        const pipe = await opening.catch((thrown: unknown) => thrown)
        if (!isPipe(pipe)) {
          expect(pipe).toBeInstanceOf(Fault)
          return
        }
        const items: unknown[] = []
        const thrown = await thrownBy(
          (async () => {
            for (let item = await pipe.next(); item !== undefined; item = await pipe.next()) items.push(item)
          })(),
        )
        if (thrown !== "nothing") expect(thrown).toBeInstanceOf(Fault)
        for (const item of items) if (!(item instanceof Chunk)) expect(item).toEqual({ ev: expect.any(String) })
        await pipe[Symbol.asyncDispose]()
      }),
      { numRuns: 150 },
    )
  })
})

function isPipe(value: unknown): value is Pipe {
  return typeof value === "object" && value !== null && "next" in value
}
