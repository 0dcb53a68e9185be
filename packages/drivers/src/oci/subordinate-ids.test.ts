import { expect, it } from "vitest"
import { subordinateIds } from "./subordinate-ids.ts"

const anna = { name: "anna", uid: 1001 }

it("takes the largest range, by name or by number", () => {
  const subuid = "root:1:5\nanna:100000:65536\n1001:300000:131072\nbert:500000:999999\n"
  expect(subordinateIds(subuid, "anna:200000:65536\n", anna)).toEqual({ uid: 300_000, gid: 200_000, count: 65_536 })
})

it("has none where either file grants none", () => {
  expect(subordinateIds("anna:100000:65536", "", anna)).toBeUndefined()
  expect(subordinateIds("", "anna:100000:65536", anna)).toBeUndefined()
  expect(subordinateIds("anna:x:y\nannabel:1:2\nanna:5:0\nanna\n:::", "anna:1:1", anna)).toBeUndefined()
})
