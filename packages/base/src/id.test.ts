import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { isId, newId } from "./id.ts"

describe("id", () => {
  test("is new each time, is its own kind, and is safe in a path, a host name and a URL", () => {
    const ids = Array.from({ length: 10_000 }, () => newId("ses"))
    expect(new Set(ids).size).toBe(ids.length)
    for (const id of ids) expect(id).toMatch(/^ses_[0-9a-z]{20}$/)
    expect(ids.every((id) => isId("ses", id) && !isId("usr", id) && !isId("se", id))).toBe(true)
  })

  test("uses every character of its alphabet in every place", () => {
    const ids = Array.from({ length: 4_000 }, () => newId("x").slice(2))
    for (let place = 0; place < 20; place++) expect(new Set(ids.map((id) => id[place])).size).toBe(32)
  })

  test("is told from anything else", () => {
    const good = newId("ses")
    for (const wrong of [
      `${good}0`,
      good.slice(0, -1),
      `${good}\n`,
      good.toUpperCase(),
      ` ${good}`,
      "ses_",
      5,
      null,
      undefined,
      [good],
    ]) {
      expect(isId("ses", wrong)).toBe(false)
    }
    fc.assert(fc.property(fc.string(), (text) => !isId("ses", text)))
    fc.assert(
      fc.property(
        fc.constantFrom("i", "l", "o", "u", "/", ".", "%", "A"),
        (letter) => !isId("ses", good.slice(0, -1) + letter),
      ),
    )
  })
})
