import { existsSync, readFileSync } from "node:fs"
import { resolve } from "node:path"
import { expect, test } from "vitest"

interface ChecklistRow {
  readonly id: string
  readonly file: string
  readonly words: string
}

const rows: ChecklistRow[] = readFileSync(resolve("docs/operating/security-checklist.md"), "utf8")
  .split("\n")
  .filter((line) => /^\| [A-Z]+-\d+ \|/.test(line))
  .map((line) => line.slice(1, -1).split(/(?<!\\)\|/))
  .map(([id = "", file = "", words = ""]) => ({
    ...{ id: id.trim(), file: file.replaceAll("`", "").trim(), words: words.replaceAll("\\|", "|").trim() },
  }))

test("every row has a test that is there, or a reason of more than a word", () => {
  expect(rows.filter((row) => !isProved(row))).toEqual([])
})

test("there are as many rows as in the design, each once", () => {
  expect(rows).toHaveLength(163)
  expect(new Set(rows.map(({ id }) => id)).size).toBe(163)
  expect(rows.filter(({ file }) => file !== "—").length).toBeGreaterThan(145)
})

test("a test that is gone, and a reason that is none, would be noticed", () => {
  const file = "e2e/security/checklist.test.ts"
  expect(isProved({ id: "X-1", file, words: ["no such", "test at all"].join(" ") })).toBe(false)
  expect(isProved({ id: "X-1", file: "e2e/nowhere.test.ts", words: "x" })).toBe(false)
  expect(isProved({ id: "X-1", file: "—", words: "later" })).toBe(false)
})

function isProved({ file, words }: ChecklistRow): boolean {
  if (file === "—") return words.split(" ").length > 5
  return existsSync(resolve(file)) && readFileSync(resolve(file), "utf8").includes(words)
}
