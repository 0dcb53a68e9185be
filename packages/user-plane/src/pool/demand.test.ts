import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { Demand, wanted } from "./demand.ts"

describe("demand", () => {
  test("is the most that was asked for at once, for five minutes", () => {
    const demand = new Demand()
    for (let i = 0; i < 100; i++) demand.note(10_000 + i)
    expect(demand.peak(11_000)).toBe(100)
    expect(demand.peak(200_000)).toBe(100)
    expect(demand.peak(400_000)).toBe(0)
  })

  test("counts a burst that falls into two seconds as one", () => {
    const demand = new Demand()
    for (let i = 0; i < 50; i++) demand.note(9_980 + i)
    expect(demand.peak(10_100)).toBe(50)
  })

  test("does not grow with what is asked for", () => {
    const demand = new Demand()
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 50 }), (count) => {
        for (let i = 0; i < count; i++) demand.note(i * 1_000_000)
        expect(demand.peak(count * 1_000_000)).toBeLessThanOrEqual(1)
      }),
    )
  })

  test("wants a quarter more than was needed, and never more than there is room for", () => {
    expect(wanted(100, 4, 256)).toBe(126)
    expect(wanted(0, 4, 256)).toBe(4)
    expect(wanted(0, 0, 256)).toBe(0)
    expect(wanted(100, 4, 10)).toBe(10)
    expect(wanted(100, 4, -3)).toBe(0)
  })
})
