import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { describe, expect, test } from "vitest"
import { shippedImages } from "../shipped/shipped.ts"
import { command, expand, pairs, readRecipe, words } from "./recipe.ts"

const step = { verb: "RUN", text: "", line: 7 } as const

describe("a recipe", () => {
  test("is read line by line, with comments, continuations and any case", () => {
    const text = '# a comment\nARG V=1\nfrom debian:$V\n\nRUN a && \\\n  # between\n  b\nCMD ["x"]\n'
    expect(readRecipe(text)).toEqual([
      { verb: "ARG", text: "V=1", line: 2 },
      { verb: "FROM", text: "debian:$V", line: 3 },
      { verb: "RUN", text: "a &&   b", line: 5 },
      { verb: "CMD", text: '["x"]', line: 8 },
    ])
  })

  test.each([
    ["RUN x", /begins with FROM/],
    ["", /begins with FROM/],
    ["FROM a\nFROM b", /line 2 .* one FROM/],
    ["FROM a\nADD x y", /line 2 .* ADD is not understood/],
    ["FROM a\nRUN", /line 2 .* says nothing/],
  ])("%j is refused with its line", (text, message) => expect(() => readRecipe(text)).toThrow(message))

  test("values are filled in", () => {
    const values = new Map([
      ["A", "1"],
      ["B", ""],
    ])
    expect(expand("$A ${A}x $C ${C:-c} ${B:-b} \\$A $", values)).toBe("1 1x  c b $A $")
  })

  test("words, pairs and commands", () => {
    expect(words(step, `a "b c" 'd "e"' f"g h"`)).toEqual(["a", "b c", 'd "e"', "fg h"])
    expect(pairs(step, 'A=1 B="x y"')).toEqual([
      ["A", "1"],
      ["B", "x y"],
    ])
    expect(pairs(step, "A old way")).toEqual([["A", "old way"]])
    expect(() => pairs(step, "=x")).toThrow(/line 7/)
    expect(command({ ...step, text: "a b" })).toEqual(["/bin/sh", "-c", "a b"])
    expect(command({ ...step, text: '["a", "b"]' })).toEqual(["a", "b"])
    expect(() => command({ ...step, text: "[1]" })).toThrow(/line 7/)
  })
})

describe("our own recipes", () => {
  const home = resolve(import.meta.dirname, "../../../../../images")
  const names = readdirSync(home).filter((name) => existsSync(join(home, name, "Recipe")))

  test("are there, and only those", () => expect(names.toSorted()).toEqual([...shippedImages].toSorted()))

  test("debian is two scripts", () => {
    expect(readdirSync(join(home, "debian")).toSorted()).toEqual(["configure", "unpack"])
  })

  test.each(names)("%s can be read, and what it copies is there", (name) => {
    for (const one of readRecipe(readFileSync(join(home, name, "Recipe"), "utf8"))) {
      if (one.verb !== "COPY") continue
      for (const from of words(one, one.text).slice(0, -1)) expect(existsSync(join(home, name, from))).toBe(true)
    }
  })
})
