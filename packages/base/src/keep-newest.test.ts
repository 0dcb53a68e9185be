import { expect, test } from "vitest"
import { keepNewest } from "./keep-newest.ts"

test("keeps so many, and those that were put last", () => {
  const map = new Map<string, number>()
  for (const [at, key] of ["a", "b", "c", "a"].entries()) keepNewest(map, 3, key, at)
  expect([...map]).toEqual([
    ["b", 1],
    ["c", 2],
    ["a", 3],
  ])
  keepNewest(map, 3, "d", 4)
  expect([...map.keys()]).toEqual(["c", "a", "d"])
  keepNewest(map, 1, "e", 5)
  expect([...map.keys()]).toEqual(["e"])
})
