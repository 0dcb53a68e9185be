import { readdirSync, readFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { parse } from "smol-toml"
import { findVerb } from "../../apps/cli/src/find-verb.ts"
import { verbs } from "../../apps/cli/src/verbs.ts"
import { describe, expect, test } from "vitest"
import { warrenCommandsIn } from "./doc-commands.ts"

const root = resolve(import.meta.dirname, "../..")

/** What people read; the reference is made of the programs themselves, and what is about insides shows wires. */
function pages(): string[] {
  const folders = ["start", "guides", "operating", "concepts"]
  const found = folders.flatMap((name) => readdirSync(join(root, "docs", name)).map((file) => `docs/${name}/${file}`))
  return ["README.md", ...found.filter((path) => path.endsWith(".md"))]
}

const fence = /^( {0,3})```(\w*)( [^\n]*)?\n(.*?)^\1```$/gms

interface Block {
  readonly place: string
  readonly language: string
  readonly mark: string
  readonly code: string
}

function blocksIn(path: string): Block[] {
  const text = readFileSync(join(root, path), "utf8")
  return [...text.matchAll(fence)].map((match) => {
    const [, , language = "", mark = "", code = ""] = match
    return { place: `${path}:${text.slice(0, match.index).split("\n").length}`, language, mark: mark.trim(), code }
  })
}

const blocks = pages().flatMap(blocksIn)
/** Indented lines are for a shell, too. */
const indented = pages().flatMap((path) => {
  const text = readFileSync(join(root, path), "utf8").replaceAll(fence, "")
  return [...text.matchAll(/^ {4}(?:sudo )?warren .*$/gm)].map(([line]) => ({ place: path, code: line }))
})

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

  const lines = [...blocks.filter(({ language }) => language === "sh"), ...indented].flatMap(({ place, code }) =>
    warrenCommandsIn(code).map((command) => ({ place, ...command })),
  )

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
