import { describe, expect, test } from "vitest"
import { rates, type Stats } from "./rates.ts"

const at = (atMs: number, cpuUs: number) => ({ atMs, stats: { cpuUs } as Stats })

describe("how quickly it is used", () => {
  test("is per second, whatever lies between two looks", () => {
    const samples = [at(0, 0), at(2_000, 1_000_000), at(2_500, 2_000_000)]
    expect(rates(samples, ({ cpuUs }) => cpuUs)).toEqual([500_000, 2_000_000])
  })

  test("is never less than nothing: a sandbox that was started anew counts from there", () => {
    expect(rates([at(0, 5_000), at(1_000, 10)], ({ cpuUs }) => cpuUs)).toEqual([0])
  })

  test("is not known from one look", () => {
    expect(rates([at(0, 5)], ({ cpuUs }) => cpuUs)).toEqual([])
  })
})
