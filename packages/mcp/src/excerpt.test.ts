import fc from "fast-check"
import { expect, test } from "vitest"
import { Excerpt, wholeCharacters } from "./excerpt.ts"

const pieces = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 40 })

test("what fits is told as it is", () => {
  fc.assert(
    fc.property(pieces, (given) => {
      const all = Buffer.concat(given)
      const excerpt = new Excerpt(Math.max(2, all.length * 2))
      for (const piece of given) excerpt.add(piece)
      expect([excerpt.left, excerpt.bytes, excerpt.text("…")]).toEqual([0, all.length, all.toString()])
    }),
  )
})

test("of what does not fit, both ends and how much is between", () => {
  fc.assert(
    fc.property(pieces, fc.integer({ min: 2, max: 64 }), (given, max) => {
      const all = Buffer.concat(given.map((piece) => Buffer.from(piece).fill("x")))
      const numbered = Buffer.from(all.map((_, index) => 97 + (index % 26)))
      const excerpt = new Excerpt(max)
      let at = 0
      for (const { length } of given) excerpt.add(numbered.subarray(at, (at += length)))
      const half = Math.floor(max / 2)
      const shown = excerpt.text("|")
      expect(excerpt.left).toBe(Math.max(0, all.length - 2 * half))
      if (excerpt.left === 0) expect(shown).toBe(numbered.toString())
      else expect(shown).toBe(`${numbered.subarray(0, half).toString()}\n|\n${numbered.subarray(-half).toString()}`)
    }),
  )
})

test("a text cut anywhere and joined again is the same", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 12 }), fc.nat(50), (text, at) => {
      // Half a surrogate pair is no text in UTF-8.
      const bytes = Buffer.from(Buffer.from(text).toString())
      const first = bytes.subarray(0, at)
      const whole = wholeCharacters(first)
      expect(first.length - whole).toBeLessThan(4)
      expect(bytes.subarray(0, whole).toString() + bytes.subarray(whole).toString()).toBe(bytes.toString())
    }),
  )
})
