import { Readable } from "node:stream"
import { buffer } from "node:stream/consumers"
import fc from "fast-check"
import { expect, test } from "vitest"
import { mask, maskText } from "./mask.ts"

test("a secret is covered, however it is cut into pieces", async () => {
  const text = "a secret sesecret, secretsecret, secre"
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(fc.nat(text.length), { maxLength: 12 }), async (cuts) => {
      const at = [0, ...cuts.toSorted((a, b) => a - b), text.length]
      const pieces = at.slice(1).map((end, index) => Buffer.from(text.slice(at[index], end)))
      const out = await buffer(Readable.from(pieces.filter((piece) => piece.length > 0)).pipe(mask(["secret"])))
      expect(out.toString()).toBe("a ****** se******, ************, secre")
    }),
  )
  expect(maskText(text, ["secret"])).toBe("a ****** se******, ************, secre")
})

test("a secret that is empty covers nothing, and holds nothing up", async () => {
  const out = await buffer(Readable.from([Buffer.from("a secret")]).pipe(mask(["", "secret"])))
  expect(out.toString()).toBe("a ******")
  expect(maskText("a secret", ["", "secret"])).toBe("a ******")
})
