import { expect, test } from "vitest"
import { allNames, namesOf, ownerOf } from "./names.ts"

test("every failpoint has somebody who strikes it, who fails unless it is passed", () => {
  expect(allNames().length).toBeGreaterThan(90)
  expect(allNames().filter((name) => ownerOf(name) === undefined)).toEqual([])
})

test("whoever strikes has something to strike", () => {
  const owners = new Set(allNames().flatMap((name) => ownerOf(name) ?? []))
  expect([...owners].toSorted()).toEqual([
    ...["agent", "confined", "control", "goods", "launcher", "sessions", "supervisor"],
  ])
  for (const owner of owners) expect(namesOf(owner)).not.toEqual([])
})
