import { parse } from "smol-toml"
import { findVerb } from "../../apps/cli/src/find-verb.ts"
import { verbs } from "../../apps/cli/src/verbs.ts"
import { describe, expect, test } from "vitest"
import { fencedIn, pages, shellIn } from "./doc-blocks.ts"
import { warrenCommandsIn } from "./doc-commands.ts"

const blocks = pages().flatMap(fencedIn)

describe("what the docs show", () => {
  test.each(blocks.filter(({ language }) => language === "ts"))("$place is run", ({ mark }) => {
    expect(mark).toBe("test")
  })

  test.each(blocks.filter(({ language }) => language === "json"))("$place is JSON", ({ code }) => {
    expect(() => JSON.parse(code) as unknown).not.toThrow()
  })

  test.each(blocks.filter(({ language }) => language === "toml"))("$place is TOML", ({ code }) => {
    expect(() => parse(code)).not.toThrow()
  })

  const lines = pages()
    .flatMap(shellIn)
    .flatMap(({ place, code }) => warrenCommandsIn(code).map((command) => ({ place, ...command })))

  test("are commands that are found at all", () => expect(lines.length).toBeGreaterThan(30))

  test.each(lines)("$place: $line is something `warren` understands", ({ words }) => {
    const { verb, args } = findVerb(verbs, words)
    expect(verb ?? words.includes("--help")).toBeTruthy()
    verb?.prepare(args)
  })
})

test("a command is taken apart as a shell would", () => {
  const found = warrenCommandsIn(
    `npx warren run -- sh -c 'echo $((6*7))'  # gone; warren x\nwarren pause a;  warren resume a | cat`,
  )
  expect(found.map(({ words }) => words)).toEqual([
    ["run", "--", "sh", "-c", "echo $((6*7))"],
    ["pause", "a"],
    ["resume", "a"],
  ])
})
