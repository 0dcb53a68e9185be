import { describe, expect, test } from "vitest"
import { crumbs, inFolder, isWithin, nameOf, parentOf } from "./paths.ts"

describe("paths", () => {
  test("a file is in its folder, whichever that is", () => {
    for (const folder of ["/", "/home", "/home/user"]) {
      const path = inFolder(folder, "notes.md")
      expect([parentOf(path), nameOf(path)]).toEqual([folder, "notes.md"])
      expect(isWithin(folder, path)).toBe(true)
    }
  })

  test("a name that begins the same is not within", () => {
    expect(isWithin("/home/user", "/home/user2")).toBe(false)
    expect(isWithin("/home/user", "/home/user")).toBe(true)
  })

  test("every folder above is named", () => {
    expect(crumbs("/home/user")).toEqual([
      ["/", "/"],
      ["/home", "home"],
      ["/home/user", "user"],
    ])
    expect(crumbs("/")).toEqual([["/", "/"]])
  })
})
