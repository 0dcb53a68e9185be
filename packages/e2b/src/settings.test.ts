import fc from "fast-check"
import { describe, expect, test } from "vitest"
import type { Session } from "./plane.ts"
import { refOf, sandboxIdOf } from "./sandbox-id.ts"
import { labelsOf, metadataOf, settingsOf, type Settings } from "./settings.ts"

const plain: Settings = { key: "0".repeat(20), template: "base", timeoutS: 300 }
const session = (labels: Record<string, string>): Session => ({ labels }) as unknown as Session

describe("what makes a session a sandbox", () => {
  test("is in its labels, whatever it says, beside the metadata", () => {
    const text = fc.string({ unit: "binary", maxLength: 300 })
    const settings = fc.record({
      template: text,
      cwd: text,
      volumes: fc.array(fc.record({ name: text, path: text }), { maxLength: 1 }),
    })
    const metadata = fc.dictionary(fc.stringMatching(/^[a-d][a-z]{0,8}$/), fc.string({ maxLength: 100 }), {
      maxKeys: 10,
    })
    fc.assert(
      fc.property(settings, metadata, (some, given) => {
        const wanted = { ...plain, ...some }
        let labels: Record<string, string>
        try {
          labels = labelsOf(wanted, given)
        } catch (thrown) {
          // Too much for labels is said, and never cut.
          expect(thrown).toMatchObject({ code: "invalid" })
          return
        }
        expect(Object.values(labels).every((value) => value.length <= 255)).toBe(true)
        expect(Object.keys(labels).length).toBeLessThanOrEqual(32)
        expect(settingsOf(session(labels))).toEqual(wanted)
        expect(metadataOf(session(labels))).toEqual(given)
      }),
      { numRuns: 40 },
    )
  })

  test("is not there in other sessions, or when somebody has spoilt it", () => {
    expect(settingsOf(session({}))).toBeUndefined()
    expect(settingsOf(session({ e2b: "build" }))).toBeUndefined()
    expect(settingsOf(session({ e2b: "sandbox" }))).toBeUndefined()
    expect(settingsOf(session({ e2b: "sandbox", "e2b.0": "{" }))).toBeUndefined()
    expect(settingsOf(session({ e2b: "sandbox", "e2b.0": '{"key":5}' }))).toBeUndefined()
  })

  test("leaves room for twenty names that are the user's, and no more", () => {
    const named = (count: number): Record<string, string> =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`n${at}`, "v"]))
    expect(Object.keys(labelsOf(plain, named(19))).length).toBeLessThanOrEqual(32)
    expect(() => labelsOf(plain, named(20))).toThrow("at most 19")
    for (const name of ["e2b", "e2b.0", "e2b.11"]) expect(() => labelsOf(plain, { [name]: "x" })).toThrow("not free")
    expect(labelsOf(plain, { "e2b.mine": "x" })["e2b.mine"]).toBe("x")
  })
})

describe("a sandbox's id", () => {
  test("says whose session it is, and nothing else is one", () => {
    const body = fc.stringMatching(/^[0-9a-hjkmnp-tv-z]{20}$/)
    fc.assert(
      fc.property(body, body, (one, key) => {
        const id = sandboxIdOf({ session: `ses_${one}`, key })
        expect(id).toMatch(/^[0-9a-z]{40}$/)
        expect(refOf(id)).toEqual({ session: `ses_${one}`, key })
      }),
    )
    fc.assert(fc.property(fc.string({ maxLength: 50 }), (text) => refOf(text) === undefined))
  })
})
