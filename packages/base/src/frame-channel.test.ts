import { once } from "node:events"
import { PassThrough } from "node:stream"
import { describe, expect, test } from "vitest"
import type { Fault } from "./fault.ts"
import { FrameChannel } from "./frame-channel.ts"
import { decodeJson, encodeJson, frameLimits, streamTags } from "./frame.ts"
import { eventually } from "./testing/eventually.ts"
import { SocketPair } from "./testing/socket-pair.ts"

interface Recorded {
  readonly bodies: Buffer[]
  readonly ends: (Fault | undefined)[]
}

function recorder(): Recorded & { handlers: { body(body: Buffer): void; end(fault: Fault | undefined): void } } {
  const bodies: Buffer[] = []
  const ends: (Fault | undefined)[] = []
  return {
    bodies,
    ends,
    handlers: { body: (body) => bodies.push(Buffer.from(body)), end: (fault) => ends.push(fault) },
  }
}

const chunk = Buffer.alloc(64 * 1024, 7)

describe("FrameChannel", () => {
  test("carries JSON and bytes both ways, in order", async () => {
    await using pair = await SocketPair.make()
    const left = recorder()
    const right = recorder()
    const a = new FrameChannel(pair.left, left.handlers)
    const b = new FrameChannel(pair.right, right.handlers)
    for (let n = 0; n < 500; n++) {
      a.send({ n })
      a.sendBytes(streamTags.stdout, Buffer.from([n % 256]))
      b.send({ n: -n })
    }
    await eventually(() => right.bodies.length === 1_000 && left.bodies.length === 500)
    expect(right.bodies.filter((_, index) => index % 2 === 0).map((body) => decodeJson(body)["n"])).toEqual([
      ...Array(500).keys(),
    ])
    expect(right.bodies[3]).toEqual(Buffer.from([streamTags.stdout, 1]))
    expect(decodeJson(left.bodies[7] ?? Buffer.alloc(0))).toEqual({ n: -7 })
  })

  test("carries bytes that are lent, and says when their memory may be used again", async () => {
    await using pair = await SocketPair.make()
    const right = recorder()
    const channel = new FrameChannel(pair.left, recorder().handlers)
    new FrameChannel(pair.right, right.handlers)
    const lent = Buffer.alloc(100_000)
    for (let n = 0; n < 100; n++) {
      lent.fill(n)
      await channel.lendBytes(streamTags.stdout, lent)
    }
    await channel.lendBytes(streamTags.stdout, Buffer.alloc(0))
    await eventually(() => right.bodies.length === 100)
    expect(right.bodies.every((body, n) => body.subarray(1).equals(Buffer.alloc(100_000, n)))).toBe(true)
  })

  test("what is lent to a peer that does not read comes back when the channel is closed", async () => {
    await using pair = await SocketPair.make()
    const channel = new FrameChannel(pair.left, recorder().handlers)
    let isBack = false
    const lending = (async () => {
      while (channel.isOpen) {
        await channel.lendBytes(streamTags.raw, chunk)
        await new Promise(setImmediate)
      }
      isBack = true
    })()
    await eventually(() => !channel.hasRoom)
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
    expect(isBack).toBe(false)
    channel.close()
    await lending
    await channel.lendBytes(streamTags.raw, chunk)
  })

  test("gives room again when the peer reads, and waits until then", async () => {
    await using pair = await SocketPair.make()
    const channel = new FrameChannel(pair.left, recorder().handlers)
    expect(channel.hasRoom).toBe(true)
    await channel.room()
    while (channel.hasRoom) {
      channel.sendBytes(streamTags.raw, chunk)
      // The kernel takes what it has room for before the next look.
      await new Promise(setImmediate)
    }
    let hasRoom = false
    const waiting = channel.room().then(() => (hasRoom = true))
    const both = channel.room()
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
    expect(hasRoom).toBe(false)
    pair.right.resume()
    await Promise.all([waiting, both])
    expect(channel.hasRoom).toBe(true)
  })

  test("a sender that waits for room never has more than one frame over the mark", async () => {
    await using pair = await SocketPair.make()
    let received = 0
    pair.right.on("data", (bytes: Buffer) => (received += bytes.length))
    const channel = new FrameChannel(pair.left, recorder().handlers)
    let most = 0
    for (let n = 0; n < 200; n++) {
      channel.sendBytes(streamTags.raw, chunk)
      most = Math.max(most, pair.left.writableLength)
      await channel.room()
    }
    await eventually(() => received === 200 * (chunk.length + 5))
    expect(most).toBeLessThanOrEqual(pair.left.writableHighWaterMark + chunk.length + 5)
  })

  test("lets exactly as much pile up as the limit says, then cuts the peer off", async () => {
    await using pair = await SocketPair.make()
    pair.left.cork()
    const { handlers, ends } = recorder()
    const frame = encodeJson({ a: "x".repeat(100) }).length
    const channel = new FrameChannel(pair.left, handlers, { unsentBytesMax: frame * 10 })
    for (let n = 0; n < 10; n++) channel.send({ a: "x".repeat(100) })
    expect([channel.isOpen, pair.left.writableLength, ends.length]).toEqual([true, frame * 10, 0])
    channel.send({ a: "" })
    expect([channel.isOpen, pair.left.destroyed]).toEqual([false, true])
    expect(ends).toMatchObject([{ code: "limit" }])
    channel.send({ ignored: true })
    await channel.room()
  })

  test("a peer that never reads cannot make it hold more than the limit and the frame that broke it", async () => {
    await using pair = await SocketPair.make()
    const { handlers, ends } = recorder()
    const channel = new FrameChannel(pair.left, handlers, { unsentBytesMax: 1024 * 1024 })
    let most = 0
    while (channel.isOpen) {
      channel.sendBytes(streamTags.raw, chunk)
      most = Math.max(most, pair.left.writableLength)
      await new Promise(setImmediate)
    }
    expect(ends).toMatchObject([{ code: "limit" }])
    expect(most).toBeLessThanOrEqual(1024 * 1024 + chunk.length + 5)
  })

  test("waiting for room ends when the channel does", async () => {
    await using pair = await SocketPair.make()
    const channel = new FrameChannel(pair.left, recorder().handlers)
    while (channel.hasRoom) channel.sendBytes(streamTags.raw, chunk)
    const waiting = channel.room()
    pair.right.destroy()
    await waiting
    await eventually(() => !channel.isOpen)
  })

  test.each([
    ["in a header", encodeJson({ a: 1 }).subarray(0, 3)],
    ["in a body", encodeJson({ a: 1 }).subarray(0, 6)],
    ["in the second frame", Buffer.concat([encodeJson({ a: 1 }), Buffer.from([0])])],
  ])("a peer that leaves inside a frame is told from one that leaves in order: %s", async (_, bytes) => {
    await using pair = await SocketPair.make()
    const { handlers, ends } = recorder()
    new FrameChannel(pair.left, handlers)
    pair.right.end(bytes)
    await eventually(() => ends.length === 1)
    // It has died, or its machine has: nobody sent anything wrong, and whoever asked may ask again.
    expect(ends).toMatchObject([{ code: "unavailable" }])
  })

  test("a peer that leaves between frames ends it without a fault, after its last frame", async () => {
    await using pair = await SocketPair.make()
    const { handlers, ends, bodies } = recorder()
    new FrameChannel(pair.left, handlers)
    pair.right.end(encodeJson({ last: true }))
    await eventually(() => ends.length === 1)
    expect([ends, bodies.length]).toEqual([[undefined], 1])
  })

  test("a wrong length closes it, and nothing after it is delivered", async () => {
    await using pair = await SocketPair.make()
    const { handlers, ends, bodies } = recorder()
    new FrameChannel(pair.left, handlers)
    pair.right.on("error", () => undefined)
    pair.right.write(Buffer.concat([encodeJson({ n: 1 }), Buffer.from([0xff, 0, 0, 0]), encodeJson({ n: 2 })]))
    await once(pair.left, "close")
    expect(bodies.length).toBe(1)
    expect(ends).toMatchObject([{ code: "limit" }])
  })

  test("a handler that throws closes it with that fault, and the rest of the chunk is not delivered", async () => {
    await using pair = await SocketPair.make()
    const ends: unknown[] = []
    let calls = 0
    const body = (): never => {
      calls++
      throw new TypeError("a bug")
    }
    new FrameChannel(pair.left, { body, end: (fault) => ends.push(fault) })
    pair.right.write(Buffer.concat([encodeJson({}), encodeJson({})]))
    await once(pair.left, "close")
    expect([calls, ends]).toMatchObject([1, [{ code: "internal" }]])
  })

  test("closed twice, it ends once, with the first reason", async () => {
    await using pair = await SocketPair.make()
    const { handlers, ends } = recorder()
    const channel = new FrameChannel(pair.left, handlers)
    channel.close()
    channel.close()
    channel[Symbol.dispose]()
    channel.finish()
    channel.send({ ignored: true })
    await once(pair.left, "close")
    expect(ends).toEqual([undefined])
  })

  test("finish sends what waits, then closes; what is sent after it changes nothing", async () => {
    await using pair = await SocketPair.make()
    const { handlers, ends } = recorder()
    const channel = new FrameChannel(pair.left, handlers)
    for (let n = 0; n < 100; n++) channel.sendBytes(streamTags.raw, chunk)
    channel.finish()
    channel.send({ late: true })
    let received = 0
    for await (const bytes of pair.right) received += (bytes as Buffer).length
    pair.right.destroy()
    await eventually(() => ends.length === 1)
    expect([received, ends]).toEqual([100 * (chunk.length + 5), [undefined]])
  })

  test("paused, it leaves the peer's bytes to the kernel; resumed, it takes them", async () => {
    await using pair = await SocketPair.make()
    const { handlers, bodies } = recorder()
    const channel = new FrameChannel(pair.left, handlers)
    channel.pause()
    for (let n = 0; n < 200; n++) pair.right.write(encodeJson({ n, fill: "x".repeat(30_000) }))
    for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
    expect(bodies.length).toBe(0)
    expect(pair.right.writableLength).toBeGreaterThan(0)
    channel.resume()
    await eventually(() => bodies.length === 200)
  })

  test("what is sent in one turn leaves as one write", async () => {
    const stream = new PassThrough()
    let writes = 0
    stream._writev = (chunks, done) => (writes++, chunks.length, done())
    const channel = new FrameChannel(stream, recorder().handlers)
    for (let n = 0; n < 50; n++) channel.send({ n })
    expect(writes).toBe(0)
    await new Promise(setImmediate)
    expect(writes).toBe(1)
    channel.close()
  })

  test("a message over the limit is refused, and the channel goes on", async () => {
    await using pair = await SocketPair.make()
    const { handlers, bodies } = recorder()
    new FrameChannel(pair.right, handlers)
    const channel = new FrameChannel(pair.left, recorder().handlers)
    expect(() => channel.send({ a: "x".repeat(frameLimits.jsonBytesMax) })).toThrow(
      expect.objectContaining({ code: "limit" }),
    )
    expect(() => channel.sendBytes(streamTags.raw, Buffer.alloc(frameLimits.streamBytesMax))).toThrow(
      expect.objectContaining({ code: "limit" }),
    )
    channel.send({ fine: true })
    await eventually(() => bodies.length === 1)
    expect(decodeJson(bodies[0] ?? Buffer.alloc(0))).toEqual({ fine: true })
  })
})
