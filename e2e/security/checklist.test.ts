import { existsSync, readFileSync } from "node:fs"
import { basename, resolve } from "node:path"
import { expect, test } from "vitest"

interface Shown {
  readonly file: string
  /** Of the test's name, as it is written there. */
  readonly words: string
}

interface ChecklistRow {
  readonly id: string
  readonly tests: readonly Shown[]
  readonly by: string
  readonly note: string
}

const read = (path: string): string => readFileSync(resolve(path), "utf8")
const page = read("docs/operating/security-checklist.md")
const [first = "", later = ""] = page.split("\n## ")
const rows = rowsOf(first)

/** Each runs test files as an ordinary user. */
const byPeople = [
  "packages/drivers/src/oci/rootless.live.test.ts",
  "packages/drivers/src/process/as-person.live.test.ts",
  "packages/user-plane/src/egress/as-person.live.test.ts",
  "packages/user-plane/src/images/rootless.live.test.ts",
  "e2e/security/as-person.live.test.ts",
]
  .map(read)
  .join("\n")

test("every row has tests that are there, or a reason of more than a word", () => {
  expect([...rows, ...rowsOf(later)].filter((row) => !isProved(row))).toEqual([])
})

test("there are as many rows as in the design, each once, and as many of each kind as is said", () => {
  expect(rows).toHaveLength(163)
  expect(new Set(rows.map(({ id }) => id)).size).toBe(163)
  const tested = rows.filter(({ tests }) => tests.length > 0)
  expect(tested.length).toBeGreaterThanOrEqual(159)
  expect(first).toContain(`${tested.length} have some; the other ${rows.length - tested.length} say why not`)
  for (const by of ["same", "theirs", "apart", "not"])
    expect(first).toMatch(new RegExp(`- \`${by}\`: .*\\(${tested.filter((row) => row.by === by).length} rows\\)`))
})

test("what is said to be tried by an ordinary user is", () => {
  const isSo: Readonly<Record<string, (row: ChecklistRow) => boolean>> = {
    same: ({ tests }) => tests.some(({ file }) => isRunByPeople(file)),
    theirs: ({ tests }) => tests.some(({ file }) => /\b(?:People|ManyUsers|makePerson)\b/.test(read(file))),
    apart: () => true,
    not: ({ note }) => isReason(note),
    "—": ({ tests }) => tests.length === 0,
  }
  expect(rows.filter((row) => !isSo[row.by]?.(row))).toEqual([])
})

test("a test that is gone, a reason that is none, and a claim that is not so would be noticed", () => {
  const [file, by, note] = ["e2e/security/checklist.test.ts", "apart", ""]
  expect(isProved({ id: "X-1", tests: [{ file, words: ["no such", "test at all"].join(" ") }], by, note })).toBe(false)
  expect(isProved({ id: "X-1", tests: [{ file: "e2e/nowhere.test.ts", words: "x" }], by, note })).toBe(false)
  expect(isProved({ id: "X-1", tests: [], by, note: "later" })).toBe(false)
  expect(isRunByPeople("packages/drivers/src/oci/checklist.live.test.ts")).toBe(true)
  expect(isRunByPeople("packages/drivers/src/oci/volume-damage.live.test.ts")).toBe(false)
})

function rowsOf(text: string): ChecklistRow[] {
  return text
    .split("\n")
    .filter((line) => /^\| [A-Z]+-\d+ \|/.test(line))
    .map((line) =>
      line
        .slice(1, -1)
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim()),
    )
    .map(([id = "", tests = "", by = "", note = ""]) => ({ id, tests: testsOf(tests), by, note }))
}

function testsOf(cell: string): Shown[] {
  if (cell === "—") return []
  return cell.split("<br>").map((one) => {
    const [, file = "", words = ""] = /^`([^`]+)` (.+)$/.exec(one) ?? []
    return { file, words: words.replaceAll("\\|", "|") }
  })
}

function isProved({ tests, note }: ChecklistRow): boolean {
  if (tests.length === 0) return isReason(note)
  return tests.every(({ file, words }) => existsSync(resolve(file)) && words !== "" && read(file).includes(words))
}

function isReason(note: string): boolean {
  return note.split(" ").length > 5
}

function isRunByPeople(file: string): boolean {
  // What every driver promises is asked by its own file.
  const name = file.includes("/drivers/src/conformance/") ? "driver.live.test.ts" : basename(file)
  return byPeople.includes(name) || byPeople.includes(`"${name.replace(".live.test.ts", "")}"`)
}
