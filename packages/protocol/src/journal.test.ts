import type { Fault } from "@warren/base/fault.ts"
import { eventually } from "@warren/base/testing/eventually.ts"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { Journal } from "./journal.ts"

const never = new AbortController().signal

describe("Journal", () => {
  test("behaves like a list that forgets its beginning", async () => {
    const step = fc.oneof(
      { weight: 5, arbitrary: fc.record({ append: fc.integer({ min: 1, max: 9 }) }) },
      { weight: 1, arbitrary: fc.record({ tail: fc.nat(30) }) },
      { weight: 2, arbitrary: fc.record({ readAfter: fc.nat(80) }) },
    )
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 10 }), fc.array(step, { maxLength: 40 }), async (itemsMax, steps) => {
        const journal = new Journal<string>(itemsMax)
        const all: string[] = []
        for (const one of steps) {
          if ("append" in one) {
            for (let n = 0; n < one.append; n++)
              expect(journal.append(`item ${all.push(`item ${all.length}`) - 1}`)).toBe(all.length)
          } else if ("tail" in one) {
            const tail = journal.tail(one.tail)
            // What is certainly kept is there; what is there is right, whole and at the end.
            expect(tail.length).toBeGreaterThanOrEqual(Math.min(one.tail, itemsMax, all.length))
            expect(tail.length).toBeLessThanOrEqual(Math.min(one.tail, 2 * itemsMax, all.length))
            expect(tail).toEqual(numbered(all).slice(all.length - tail.length))
          } else await readLikeModel(journal, all, one.readAfter, itemsMax)
          expect(journal.last).toBe(all.length)
        }
      }),
      { numRuns: 150 },
    )
  })

  test("a reader gets what was and what comes, in order, and ends with the caller's reason", async () => {
    const journal = new Journal<number>(100)
    journal.append(1)
    const controller = new AbortController()
    const seen: number[] = []
    const read = async (): Promise<void> => {
      for await (const { seq, item } of journal.read(0, controller.signal)) {
        expect(seq).toBe(item)
        seen.push(item)
      }
    }
    const reading = Promise.allSettled([read(), read(), read()])
    for (let n = 2; n <= 50; n++) {
      if (n % 7 === 0) await new Promise(setImmediate)
      journal.append(n)
    }
    await eventually(() => seen.length === 150)
    controller.abort("enough")
    expect(await reading).toEqual(Array.from({ length: 3 }, () => ({ status: "rejected", reason: "enough" })))
  })

  test("a reader that falls behind gets `resync` with where to go on, never a gap", async () => {
    const journal = new Journal<number>(10)
    const feed = journal.read(0, never)
    journal.append(1)
    expect((await feed.next()).value?.seq).toBe(1)
    for (let n = 2; n <= 40; n++) journal.append(n)
    const thrown = (await feed.next().catch((failure: unknown) => failure)) as Fault
    expect(thrown).toMatchObject({ code: "resync", hint: "read the current state, then continue after 40" })
  })

  test("a reader of the journal before this one is told, whatever number it had", async () => {
    const journal = new Journal<number>(10, 1_000)
    expect(journal.append(1)).toBe(1_000)
    await expect(journal.read(1, never).next()).rejects.toMatchObject({ code: "resync" })
    expect((await journal.read(0, never).next()).value).toEqual({ seq: 1_000, item: 1 })
  })

  test("a reader that was further than this journal is told, not left waiting for numbers that mean something else", async () => {
    const journal = new Journal<number>(10)
    journal.append(1)
    await expect(journal.read(500, never).next()).rejects.toMatchObject({
      code: "resync",
      hint: expect.stringContaining("after 1"),
    })
  })

  test("an aborted signal stops a reader that waits and one that has not begun", async () => {
    const journal = new Journal<number>(10)
    const controller = new AbortController()
    const waiting = journal.read(0, controller.signal).next()
    controller.abort("enough")
    await expect(waiting).rejects.toBe("enough")
    await expect(journal.read(0, controller.signal).next()).rejects.toBe("enough")
  })
})

const numbered = (all: readonly string[]): unknown[] => all.map((item, index) => ({ seq: index + 1, item }))

async function readLikeModel(
  journal: Journal<string>,
  all: readonly string[],
  after: number,
  itemsMax: number,
): Promise<void> {
  const controller = new AbortController()
  const items: unknown[] = []
  let thrown: unknown
  try {
    if (after === all.length) controller.abort("at the end")
    for await (const item of journal.read(after, controller.signal)) {
      items.push(item)
      if (item.seq === all.length) controller.abort("at the end")
    }
  } catch (failure) {
    thrown = failure
  }
  if (thrown === "at the end" && after > 0) expect(items).toEqual(numbered(all).slice(after))
  // From 0: all that is kept, which is at least `itemsMax`, up to the end.
  else if (thrown === "at the end") {
    expect(items.length).toBeGreaterThanOrEqual(Math.min(itemsMax, all.length))
    expect(items).toEqual(numbered(all).slice(all.length - items.length))
  } else {
    expect(thrown).toMatchObject({ code: "resync" })
    expect(after > all.length || after < all.length - itemsMax).toBe(true)
  }
}
