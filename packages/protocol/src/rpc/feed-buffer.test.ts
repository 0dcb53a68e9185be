import type { Fault } from "@warren/base/fault.ts"
import { describe, expect, test } from "vitest"
import { FeedBuffer } from "./feed-buffer.ts"
import { rpcLimits } from "./wire.ts"

async function drain(buffer: FeedBuffer): Promise<{ seqs: number[]; thrown: unknown }> {
  const seqs: number[] = []
  try {
    for await (const { seq } of buffer.read()) seqs.push(seq)
  } catch (thrown) {
    return { seqs, thrown }
  }
  return { seqs, thrown: undefined }
}

describe("FeedBuffer", () => {
  test("gives what was kept, then what comes, then the end", async () => {
    const buffer = new FeedBuffer()
    buffer.add(1, "a", 1)
    const reading = drain(buffer)
    await new Promise(setImmediate)
    buffer.add(2, "b", 1)
    await new Promise(setImmediate)
    buffer.add(3, "c", 1)
    buffer.end()
    expect(await reading).toEqual({ seqs: [1, 2, 3], thrown: undefined })
  })

  test("keeps as many items as the limit; one more ends it with `resync` after the last that was kept", async () => {
    const buffer = new FeedBuffer()
    for (let n = 1; n <= rpcLimits.feedItemsMax; n++) expect(buffer.add(n, n, 1)).toBe(true)
    expect(buffer.add(rpcLimits.feedItemsMax + 1, 0, 1)).toBe(false)
    expect(buffer.add(rpcLimits.feedItemsMax + 2, 0, 1)).toBe(true)
    const { seqs, thrown } = await drain(buffer)
    expect([seqs.length, seqs.at(-1)]).toEqual([rpcLimits.feedItemsMax, rpcLimits.feedItemsMax])
    expect((thrown as Fault).toData()).toMatchObject({
      code: "resync",
      hint: `read again after ${rpcLimits.feedItemsMax}`,
    })
  })

  test("keeps as many bytes as the limit; one more ends it with `resync`", async () => {
    const buffer = new FeedBuffer()
    expect(buffer.add(5, 0, rpcLimits.feedBytesMax - 1)).toBe(true)
    expect(buffer.add(6, 0, 1)).toBe(true)
    expect(buffer.add(7, 0, 1)).toBe(false)
    const { seqs, thrown } = await drain(buffer)
    expect(seqs).toEqual([5, 6])
    expect(thrown).toMatchObject({ code: "resync", hint: "read again after 6" })
  })

  test("an item that alone is too large names the one before it", async () => {
    const buffer = new FeedBuffer()
    expect(buffer.add(9, 0, rpcLimits.feedBytesMax + 1)).toBe(false)
    expect(await drain(buffer)).toMatchObject({ seqs: [], thrown: { code: "resync", hint: "read again after 8" } })
  })

  test("counts anew what comes after a reader took what was kept", async () => {
    const buffer = new FeedBuffer()
    const reader = buffer.read()
    for (let round = 0; round < 3; round++) {
      for (let n = 0; n < rpcLimits.feedItemsMax; n++)
        expect(buffer.add(round * rpcLimits.feedItemsMax + n, n, 8_000)).toBe(true)
      for (let n = 0; n < rpcLimits.feedItemsMax; n++) expect((await reader.next()).value?.item).toBe(n)
      // The reader asks for the next batch only now.
      const next = reader.next()
      buffer.add(-1, "between", 1)
      expect((await next).value?.item).toBe("between")
    }
  })

  test("a failure comes after what was kept, and the first one stands", async () => {
    const buffer = new FeedBuffer()
    buffer.add(1, 0, 1)
    buffer.fail("first")
    buffer.fail("second")
    buffer.end()
    expect(await drain(buffer)).toEqual({ seqs: [1], thrown: "first" })
  })
})
