import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { nearest } from "./nearest.ts"

const words = ["start", "stop", "restart", "status", "snapshot", "hibernate", "completion"]

describe("the word that was meant", () => {
  test("is found when one letter is missing, doubled or swapped", () => {
    fc.assert(
      fc.property(fc.constantFrom("snapshot", "hibernate", "completion"), fc.nat(), fc.nat(2), (word, at, kind) => {
        const i = at % (word.length - 1)
        const [a = "", b = ""] = [word[i], word[i + 1]]
        const typo = [
          word.slice(0, i) + word.slice(i + 1),
          word.slice(0, i) + a + word.slice(i),
          `${word.slice(0, i)}${b}${a}${word.slice(i + 2)}`,
        ]
        expect(nearest(typo[kind] ?? "", words)).toBe(word)
      }),
    )
  })

  test("is found by its beginning, and nothing is made up", () => {
    expect(nearest("hib", words)).toBe("hibernate")
    expect(nearest("frobnicate", words)).toBeUndefined()
    expect(nearest("x", words)).toBeUndefined()
  })
})
