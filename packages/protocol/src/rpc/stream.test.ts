import { encodeJson, encodeStream, frameLimits, streamTags } from "@warren/base/frame.ts"
import { eventually } from "@warren/base/testing/eventually.ts"
import { keptBytes } from "@warren/base/testing/kept-bytes.ts"
import { pattern } from "@warren/base/testing/pattern.ts"
import { settles } from "@warren/base/testing/settles.ts"
import { SocketPair } from "@warren/base/testing/socket-pair.ts"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { backlogBytesMax } from "../backlog.ts"
import { Chunk } from "../conversation.ts"
import { piped, servedRaw, type Pipe } from "../testing/piped.ts"
import { RawPeer, Served, System, wire } from "../testing/rpc-system.ts"
import { remote } from "./remote.ts"
import { openStream } from "./stream.ts"

const mebibyte = 1024 * 1024

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
