import { expect, test } from "vitest"
import type { Result } from "./harness.ts"
import { distanceOf, toPlot } from "./plot.ts"

const base = { name: "a.b", unit: "ms", n: 1, p50: 30, p95: 30, p99: 30, baseline: null } as const
const result = (more: Partial<Result>): Result => ({ ...base, ratio: null, ...more })

test("how far from its goal, whichever way it counts", () => {
  expect(distanceOf(result({ goal: { p50Max: 60 } }))).toBe(0.5)
  expect(distanceOf(result({ ratio: 4, goal: { ratioMax: 2 } }))).toBe(2)
  expect(distanceOf(result({ ratio: 0.25, goal: { ratioMin: 0.5 } }))).toBe(2)
  expect(distanceOf(result({}))).toBeUndefined()
})

test("a bar for each that has a goal, on the side where it belongs", () => {
  const met = result({ name: "met", goal: { p50Max: 60 } })
  const missed = result({ name: "missed", ratio: 4, goal: { ratioMax: 2 } })
  const svg = toPlot([met, missed, result({ name: "without" })])
  expect(svg).toContain("0.50 × the goal")
  expect(svg).toContain("2.00 × the goal")
  expect(svg).not.toContain("without")
  expect(svg.match(/class="met"/g)).toHaveLength(1)
  expect(svg.match(/class="missed"/g)).toHaveLength(1)
})
