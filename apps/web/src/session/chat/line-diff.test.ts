import fc from "fast-check"
import { expect, test } from "vitest"
import { countOf, lineDiff, unifiedDiff } from "./line-diff.ts"

const signs = { same: " ", gone: "-", new: "+", cut: "…" } as const
const drawn = (before: string, after: string): string[] =>
  lineDiff(before, after).map(({ kind, text }) => `${signs[kind]}${text}`)

test("shows what changed, with a little around it", () => {
  const before = ["one", "two", "three", "four", "five", "six", "seven"].join("\n")
  expect(drawn(before, before.replace("six", "SIX"))).toEqual(["…", " four", " five", "-six", "+SIX", " seven"])
  expect(drawn("", "new\nfile\n")).toEqual(["+new", "+file"])
  expect(drawn("same", "same")).toEqual(["…"])
})

test("what is gone and what is new make the one text of the other", () => {
  const text = fc.array(fc.constantFrom("a", "b", "c", ""), { maxLength: 12 }).map((lines) => lines.join("\n"))
  const count = (lines: string): number => (lines === "" ? 0 : lines.replace(/\n$/, "").split("\n").length)
  fc.assert(
    fc.property(text, text, (before, after) => {
      const { added, gone } = countOf(lineDiff(before, after))
      expect(added - gone).toBe(count(after) - count(before))
    }),
  )
})

test("long texts are not compared for ever", () => {
  const long = (word: string): string => Array.from({ length: 5_000 }, (_, index) => `${word} ${index}`).join("\n")
  expect(countOf(lineDiff(long("a"), long("b")))).toEqual({ added: 5_000, gone: 5_000 })
})

test("reads a diff that was written by git, and takes nothing else for one", () => {
  const text = "diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@ function f\n same\n-old\n+new\n"
  expect(unifiedDiff(text)?.slice(0, 4)).toEqual([
    { kind: "cut", text: "function f" },
    { kind: "same", text: "same" },
    { kind: "gone", text: "old" },
    { kind: "new", text: "new" },
  ])
  expect(unifiedDiff("- a list\n+ of things")).toBeUndefined()
})
