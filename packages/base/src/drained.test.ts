import { Writable } from "node:stream"
import { expect, test } from "vitest"
import { drained } from "./drained.ts"

/** Takes what it is given when a test says so. */
class Slow extends Writable {
  takeMore: (failure?: Error) => void = () => undefined

  override _write(_: Buffer, __: string, done: (failure?: Error | null) => void): void {
    this.takeMore = done
  }
}

function listenersOf(stream: Writable): number {
  return stream.eventNames().reduce((sum, name) => sum + stream.listenerCount(name), 0)
}

test("whoever has to wait goes on when there is room, and a thousand waits leave nothing at the stream", async () => {
  const stream = new Slow({ highWaterMark: 1 })
  const before = listenersOf(stream)
  for (let turn = 0; turn < 1_000; turn++) {
    expect(stream.write("ab")).toBe(false)
    const waited = drained(stream)
    stream.takeMore()
    await waited
  }
  expect(listenersOf(stream)).toBe(before)
})

test("a stream that takes more is not waited for", async () => {
  const stream = new Slow()
  stream.write("a")
  await drained(stream)
  expect(stream.writableLength).toBe(1)
})

test.each([
  ["breaks", (stream: Slow) => stream.takeMore(new Error("broken"))],
  ["is let go of", (stream: Slow) => void stream.destroy()],
  ["breaks by somebody else", (stream: Slow) => void stream.destroy(new Error("gone"))],
])("nobody waits for one that %s, then or later", async (_, end) => {
  const stream = new Slow({ highWaterMark: 1 })
  stream.write("abc")
  const waited = drained(stream)
  end(stream)
  await waited
  await drained(stream)
  expect(listenersOf(stream)).toBe(0)
})
