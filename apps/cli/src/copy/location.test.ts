import { describe, expect, test } from "vitest"
import { locationOf } from "./location.ts"

describe("where a copy goes", () => {
  test.each([
    ["-", { kind: "stream" }],
    ["file", { kind: "local", path: "file" }],
    ["./a:b", { kind: "local", path: "./a:b" }],
    ["/tmp/a:b", { kind: "local", path: "/tmp/a:b" }],
    [":x", { kind: "local", path: ":x" }],
    ["ses:/etc/hosts", { kind: "inside", place: { session: "ses" }, path: "/etc/hosts" }],
    ["ses:notes.md", { kind: "inside", place: { session: "ses" }, path: "/workspace/notes.md" }],
    ["@site:src/a.ts", { kind: "inside", place: { workspace: "site" }, path: "src/a.ts" }],
    ["@site:", { kind: "inside", place: { workspace: "site" }, path: "/" }],
  ])("%s", (text, location) => expect(locationOf(text)).toEqual(location))

  test("nothing is no place", () => {
    expect(() => locationOf("")).toThrow("empty")
    expect(() => locationOf("ses:")).toThrow("has no path")
  })
})
