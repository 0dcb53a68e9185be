import { once } from "node:events"
import { Fault } from "@warren/base/fault.ts"
import { encodeJson, encodeStream, frameLimits, streamTags } from "@warren/base/frame.ts"
import { eventually } from "@warren/base/testing/eventually.ts"
import { keptBytes } from "@warren/base/testing/kept-bytes.ts"
import { SocketPair } from "@warren/base/testing/socket-pair.ts"
import fc from "fast-check"
import { afterEach, describe, expect, test, vi } from "vitest"
import { backlogBytesMax } from "../backlog.ts"
import { Chunk, type Conversation } from "../conversation.ts"
import { Served, RawPeer, System, wire } from "../testing/rpc-system.ts"
import { remote } from "./remote.ts"
import { openStream } from "./stream.ts"
import { rpcLimits } from "./wire.ts"

const mebibyte = 1024 * 1024
type Pipe = Conversation<{ op: string }, { ev: string }>
type Mode = Parameters<typeof openStream<typeof wire, "pipe.open">>[3]["mode"]

async function piped(
  mode: Mode,
  work: (pipe: Pipe, served: Served) => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  await using served = await Served.start()
  await using pipe = await openStream(served.peer, wire, "pipe.open", { mode }, signal)
  await work(pipe, served)
}

const thrownBy = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "nothing",
    (thrown: unknown) => thrown,
  )

/** Waits until a number stays the same over many turns of the event loop. */
async function settles(read: () => number): Promise<number> {
  let last = read()
  for (let same = 0; same < 200; same++) {
    await new Promise(setImmediate)
    if (read() !== last) same = 0
    last = read()
  }
  return last
}

/** Everything until the end: messages as they are, bytes next to each other joined. */
async function readAll(pipe: Pipe): Promise<(string | Buffer)[]> {
  const items: (string | Buffer[])[] = []
  for (let item = await pipe.next(); item !== undefined; item = await pipe.next()) {
    const last = items.at(-1)
    if (!(item instanceof Chunk)) items.push(item.ev)
    else if (Array.isArray(last)) last.push(Buffer.from(item.bytes))
    else items.push([Buffer.from(item.bytes)])
  }
  return items.map((item) => (Array.isArray(item) ? Buffer.concat(item) : item))
}

/** Bytes that show when a part of them is lost, doubled or moved. */
function pattern(bytes: number, seed: number): Buffer {
  const made = Buffer.alloc(bytes)
  for (let at = 0; at < bytes; at++) made[at] = (at * 31 + (at >> 8) * 7 + seed) & 0xff
  return made
}

afterEach(() => {
  vi.useRealTimers()
})

describe("a stream", () => {
  test("carries any bytes in any pieces both ways, exactly, with messages at their place", async () => {
    const piece = fc.oneof(
      { weight: 3, arbitrary: fc.integer({ min: 0, max: 2_000 }) },
      { weight: 2, arbitrary: fc.integer({ min: 0, max: mebibyte }) },
      { weight: 1, arbitrary: fc.constantFrom(frameLimits.streamBytesMax - 1, frameLimits.streamBytesMax, mebibyte) },
      { weight: 2, arbitrary: fc.string({ maxLength: 20 }).map((text) => `m${text}`) },
    )
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 12 }), (pieces) =>
        piped("echo", async (pipe, served) => {
          const reading = readAll(pipe)
          const sent: (string | Buffer)[] = []
          for (const [index, item] of pieces.entries()) {
            if (typeof item === "string") {
              pipe.send({ op: item })
              sent.push(item)
            } else {
              const bytes = pattern(item, index)
              await pipe.write(bytes)
              const last = sent.at(-1)
              if (Buffer.isBuffer(last)) sent[sent.length - 1] = Buffer.concat([last, bytes])
              else if (item > 0) sent.push(bytes)
            }
          }
          pipe.send({ op: "eof" })
          const got = await reading
          expect(got.length).toBe(sent.length)
          for (const [index, item] of sent.entries()) {
            if (typeof item === "string") expect(got[index]).toBe(item)
            else expect(item.equals(got[index] as Buffer)).toBe(true)
          }
          await eventually(() => served.connection.inFlight === 0)
          expect(served.answers.events.filter((event) => event === "disposed")).toEqual(["disposed"])
        }),
      ),
      { numRuns: 40 },
    )
  })

  test("is over when the handler says so, for everybody and again and again", () =>
    piped("ends", async (pipe, served) => {
      expect(await pipe.next()).toBeUndefined()
      expect(await pipe.next()).toBeUndefined()
      await pipe.write(Buffer.alloc(mebibyte))
      pipe.send({ op: "too late" })
      await eventually(() => served.connection.inFlight === 0)
      expect(served.answers.events).toEqual(["opened", "disposed"])
    }))

  test("has pieces larger than a frame cut for it", async () => {
    await using served = await Served.start()
    const bytes = 3 * mebibyte + 1
    await using pipe = await openStream(served.peer, wire, "pipe.open", { mode: "flood", bytes })
    for (let read = 0; read < bytes;) {
      const item = await pipe.next()
      if (!(item instanceof Chunk)) throw new Error("no bytes")
      expect(item.bytes.every((byte) => byte === 7)).toBe(true)
      read += item.bytes.length
    }
  })

  test("a caller that does not read holds the handler back, and nothing grows", () =>
    piped("flood", async (pipe, served) => {
      const before = keptBytes()
      await pipe.next()
      const produced = await settles(() => served.answers.produced)
      // What the two ends and the kernel hold; the pipe would go on for ever.
      expect(produced).toBeLessThan(4 * mebibyte)
      expect(keptBytes() - before).toBeLessThan(16 * mebibyte)
      for (let read = 0; read < 200; read++) await pipe.next()
      expect(served.answers.produced).toBeGreaterThan(produced)
    }))

  test("a handler that does not read holds the caller back, who is told so, and nothing grows", () =>
    piped("deaf", async (pipe, served) => {
      let written = 0
      const writing = (async () => {
        for (;;) {
          await pipe.write(Buffer.alloc(64 * 1024))
          written += 64 * 1024
          if (served.socket.destroyed) return
          await new Promise(setImmediate)
        }
      })()
      const before = keptBytes()
      await eventually(() => written > backlogBytesMax / 2)
      expect(await settles(() => written)).toBeLessThan(4 * mebibyte)
      expect(keptBytes() - before).toBeLessThan(16 * mebibyte)
      // The handler was given one piece, and has not come back for more.
      expect(served.answers.produced).toBeLessThanOrEqual(frameLimits.streamBytesMax)
      await served.connection[Symbol.asyncDispose]()
      await writing
    }))

  test.each([
    ["messages", () => encodeJson({ id: 1, say: { op: "x".repeat(1_000) } })],
    ["tiny pieces", () => encodeStream(streamTags.stdin, Buffer.from("x"))],
  ])("%s that nobody takes are held back like bytes", (_, frame) =>
    servedRaw(async (peer, served) => {
      peer.send({ id: 1, open: "pipe.open", in: { mode: "deaf" } })
      await peer.answer(1)
      const before = keptBytes()
      peer.socket.write(encodeStream(streamTags.stdin, Buffer.from("the first is taken, and never done with")))
      const many = Buffer.concat(Array.from({ length: 2_000 }, frame))
      let sent = 0
      while ((await settles(() => served.socket.bytesRead)) < sent || sent < 64 * mebibyte) {
        if (peer.socket.writableNeedDrain) break
        peer.socket.write(many)
        sent += many.length
      }
      expect(peer.socket.writableNeedDrain).toBe(true)
      expect(served.socket.isPaused()).toBe(true)
      expect(keptBytes() - before).toBeLessThan(16 * mebibyte)
    }),
  )

  test("messages from a server that a caller does not read are held back like bytes", async () => {
    await using pair = await SocketPair.make()
    const peer = new RawPeer(pair.right)
    const opening = openStream(pair.left, wire, "pipe.open", {})
    peer.send({ welcome: { version: 1, build: "x", inFlightMax: 1 } }, { id: 1, opened: true })
    await using pipe = await opening
    const before = keptBytes()
    const many = Buffer.concat(Array.from({ length: 1_000 }, () => encodeJson({ id: 1, say: { ev: "x" } })))
    for (let sent = 0; sent < 64 * mebibyte && !pair.right.writableNeedDrain; sent += many.length) {
      pair.right.write(many)
      await settles(() => pair.left.bytesRead)
    }
    expect(pair.right.writableNeedDrain).toBe(true)
    expect(keptBytes() - before).toBeLessThan(16 * mebibyte)
    for (let read = 0; read < 5_000; read++) await pipe.next()
  })

  test("one stream that is not read does not hold back another", async () => {
    await using first = await Served.start()
    await using second = await Served.start()
    await using flood = await openStream(first.peer, wire, "pipe.open", { mode: "flood" })
    await using echo = await openStream(second.peer, wire, "pipe.open", {})
    await flood.next()
    await settles(() => first.answers.produced)
    await echo.write(Buffer.from("hello"))
    expect(await echo.next()).toMatchObject({ bytes: Buffer.from("hello") })
  })
})

describe("a stream ends", () => {
  const modes: Mode[] = ["echo", "flood", "rush", "deaf", "stubborn"]

  test.each(modes)("when its signal aborts: with its reason, and so does the handler (%s)", async (mode) => {
    const controller = new AbortController()
    await piped(
      mode,
      async (pipe, served) => {
        const reading = thrownBy(drain(pipe))
        await eventually(() => served.answers.events.includes("opened"))
        controller.abort("enough")
        expect(await reading).toBe("enough")
        await eventually(() => served.connection.inFlight === 0)
        expect(served.answers.events).toEqual(["opened", "aborted", "disposed"])
        expect(await thrownBy(pipe.next())).toBe("enough")
      },
      controller.signal,
    )
  })

  test.each(modes)("when it is disposed, twice too (%s)", (mode) =>
    piped(mode, async (pipe, served) => {
      const reading = thrownBy(drain(pipe))
      await pipe[Symbol.asyncDispose]()
      await pipe[Symbol.asyncDispose]()
      expect(await reading).toMatchObject({ code: "unavailable" })
      await eventually(() => served.connection.inFlight === 0)
      expect(served.answers.events).toEqual(["opened", "aborted", "disposed"])
    }),
  )

  test.each(modes)("when the caller's end of the connection is lost (%s)", (mode) =>
    piped(mode, async (_, served) => {
      served.peer.destroy()
      await eventually(() => served.connection.inFlight === 0)
      expect(served.answers.events).toEqual(["opened", "aborted", "disposed"])
    }),
  )

  test.each(modes)("when the server's end of the connection is lost (%s)", (mode) =>
    piped(mode, async (pipe, served) => {
      const reading = thrownBy(drain(pipe))
      served.socket.destroy()
      expect(await reading).toMatchObject({ code: "unavailable" })
      await eventually(() => served.connection.inFlight === 0)
      expect(served.answers.events).toEqual(["opened", "aborted", "disposed"])
    }),
  )

  test("when a caller that is held back goes away, although nothing is read from it", () =>
    servedRaw(async (peer, served) => {
      vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] })
      peer.send({ id: 1, open: "pipe.open", in: { mode: "deaf" } })
      await peer.answer(1)
      for (let n = 0; n < 20; n++) peer.socket.write(encodeStream(streamTags.stdin, Buffer.alloc(128 * 1024)))
      await eventually(() => served.socket.isPaused())
      vi.advanceTimersByTime(rpcLimits.heldMs)
      await eventually(() => peer.messages.some((message) => message["held"] === true))
      peer.socket.destroy()
      await once(peer.socket, "close")
      expect(served.connection.inFlight).toBe(1)
      vi.advanceTimersByTime(rpcLimits.heldMs)
      await eventually(() => served.connection.inFlight === 0)
      expect(served.answers.events).toEqual(["opened", "aborted", "disposed"])
      expect(vi.getTimerCount()).toBe(0)
    }))

  test.each(modes)("when the server closes, which waits for it (%s)", (mode) =>
    piped(mode, async (pipe, served) => {
      const reading = thrownBy(drain(pipe))
      await served.connection[Symbol.asyncDispose]()
      expect(served.answers.events).toEqual(["opened", "aborted", "disposed"])
      expect(served.connection.inFlight).toBe(0)
      // Nobody has cancelled it: whoever reads may come back.
      expect(await reading).toMatchObject({ code: "unavailable" })
    }),
  )

  test("when the server closes while it is being opened", async () => {
    await using served = await Served.start()
    const opening = thrownBy(openStream(served.peer, wire, "pipe.open", { mode: "slow" }))
    await eventually(() => served.answers.events.includes("opening"))
    await served.connection[Symbol.asyncDispose]()
    expect(await opening).toMatchObject({ code: "unavailable" })
    expect(served.answers.events).toEqual(["opening", "aborted"])
  })

  test("when its signal aborts while it is being opened, or before", async () => {
    await using served = await Served.start()
    const controller = new AbortController()
    const opening = thrownBy(openStream(served.peer, wire, "pipe.open", { mode: "slow" }, controller.signal))
    await eventually(() => served.answers.events.includes("opening"))
    controller.abort("enough")
    expect(await opening).toBe("enough")
    await eventually(() => served.connection.inFlight === 0)
    await using pair = await SocketPair.make()
    expect(await thrownBy(openStream(pair.left, wire, "pipe.open", {}, controller.signal))).toBe("enough")
    expect(pair.left.destroyed).toBe(true)
  })

  test("with the handler's fault in the middle", () =>
    piped("fails", async (pipe, served) => {
      expect(await thrownBy(pipe.next())).toMatchObject({ code: "conflict", message: "it broke in the middle" })
      expect(await thrownBy(pipe.next())).toBeInstanceOf(Fault)
      await eventually(() => served.connection.inFlight === 0)
      expect(served.answers.events).toEqual(["opened", "disposed"])
    }))

  test("with `internal` when the handler says what its contract does not, and the log has it", () =>
    piped("lies", async (pipe, served) => {
      expect(await thrownBy(pipe.next())).toMatchObject({ code: "internal" })
      expect(served.logged).toMatchObject([{ event: "rpc.bug", call: "pipe.open" }])
    }))

  test("with `invalid` when the caller says what its contract does not", () =>
    piped("stubborn", async (pipe, served) => {
      pipe.send({ op: 5 } as unknown as { op: string })
      expect(await thrownBy(pipe.next())).toMatchObject({ code: "invalid", message: expect.stringContaining("op") })
      await eventually(() => served.connection.inFlight === 0)
      expect(served.answers.events).toEqual(["opened", "aborted", "disposed"])
      expect(served.logged).toEqual([])
    }))

  test.each([
    ["not_found", { mode: "missing" } as const],
    ["invalid", { mode: "no such mode" as "echo" }],
    ["limit", { mode: "x".repeat(frameLimits.jsonBytesMax) as "echo" }],
  ])("before it begins, with %s", async (code, input) => {
    await using served = await Served.start()
    expect(await thrownBy(openStream(served.peer, wire, "pipe.open", input))).toMatchObject({ code })
    await eventually(() => served.socket.destroyed)
    expect([served.connection.inFlight, served.answers.events.includes("opened")]).toEqual([0, false])
  })

  test("before it begins, when the other side is silent for too long", async () => {
    await using pair = await SocketPair.make()
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    const opening = thrownBy(openStream(pair.left, wire, "pipe.open", {}))
    vi.advanceTimersByTime(rpcLimits.helloMs)
    expect(await opening).toMatchObject({ code: "timeout" })
    expect(vi.getTimerCount()).toBe(0)
  })
})

async function servedRaw(work: (peer: RawPeer, served: Served) => Promise<void>): Promise<void> {
  await using served = await Served.start()
  await work(new RawPeer(served.peer).hello(), served)
}

function isPipe(value: unknown): value is Pipe {
  return typeof value === "object" && value !== null && "next" in value
}

async function drain(pipe: Pipe): Promise<void> {
  while ((await pipe.next()) !== undefined) continue
}

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

test("a remote's streams have the shape of the handler's", async () => {
  await using system = await System.start()
  await using other = await Served.start()
  const plane = remote(wire, {
    client: () => Promise.resolve(system.client),
    connect: () => Promise.resolve(other.peer),
  })
  const context = { signal: new AbortController().signal, caller: { name: "x" } }
  await using pipe = await plane["pipe.open"]({ mode: "echo", bytes: 1 }, context)
  await pipe.write(Buffer.from("hello"))
  expect(await pipe.next()).toMatchObject({ bytes: Buffer.from("hello") })
})
