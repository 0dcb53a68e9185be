import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { snapshotName, templateName, templateOf } from "./template-name.ts"

describe("a template's name", () => {
  test("is found again in its snapshot's", () => {
    const word = fc.stringMatching(/^[a-z0-9]{1,4}(?:[_-][a-z0-9]{1,3}){0,2}$/).filter((text) => !text.includes("-5f-"))
    fc.assert(
      fc.property(word, word, (name, tag) => {
        const whole = snapshotName({ name, tag })
        expect(whole).toMatch(/^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/)
        expect(templateOf(whole)).toEqual({ name, tag })
      }),
    )
  })

  test("has a tag, and perhaps whose it is", () => {
    expect(templateName("app")).toEqual({ name: "app", tag: "default" })
    expect(templateName("team/app:v1")).toEqual({ name: "app", tag: "v1" })
    for (const wrong of ["", "App", "a b", "a--b", "-a", "a:b:c", "a:", "a__b", "a-5f-b", "../etc", "a/b/c"])
      expect(() => templateName(wrong)).toThrow("lower-case")
    expect(() => snapshotName({ name: "a".repeat(60), tag: "default" })).toThrow("too long")
    expect(templateOf("my-state")).toBeUndefined()
    expect(templateOf(undefined)).toBeUndefined()
  })
})
