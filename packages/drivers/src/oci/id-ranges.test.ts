import { expect, it } from "vitest"
import { IdRanges, rangeSize } from "./id-ranges.ts"

it("gives each its own range for as long as there are some, then shares and says so", () => {
  const ranges = new IdRanges({ first: 100_000, slots: 3, isShared: true })
  const own = [ranges.take(), ranges.take(), ranges.take()]
  expect(new Set(own)).toEqual(new Set([0, 1, 2].map((slot) => 100_000 + slot * rangeSize)))
  expect(own.some((base) => ranges.isShared(base))).toBe(false)
  const fourth = ranges.take()
  expect(ranges.isShared(fourth)).toBe(true)
  ranges.give(fourth)
  expect(ranges.isShared(fourth)).toBe(false)
  const [first = 0] = own
  ranges.give(first)
  expect(ranges.take()).toBe(first)
})

it("says so from the start where there is only one", () => {
  const ranges = new IdRanges({ first: 100_000, slots: 1, isShared: true })
  expect(ranges.isShared(ranges.take())).toBe(true)
})

it("never gives root's twice", () => {
  const ranges = new IdRanges()
  const taken = Array.from({ length: 500 }, () => ranges.take())
  expect(new Set(taken).size).toBe(500)
  expect(taken.some((base) => ranges.isShared(base))).toBe(false)
})

it("says of a range that images have that it is everybody's who stands on them", () => {
  const ranges = new IdRanges({ first: 100_000 + rangeSize, slots: 3, isShared: true })
  ranges.keep(100_000)
  expect(ranges.isShared(100_000)).toBe(true)
  expect([ranges.take(), ranges.take(), ranges.take()]).not.toContain(100_000)
})
