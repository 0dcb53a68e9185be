import { readdir, readFile } from "node:fs/promises"
import { expect, test } from "vitest"
import { sourceFiles } from "../source-files.ts"
import { failpointsOf, failpointsPage } from "./failpoints.ts"

const files = await sourceFiles(".")
const names = failpointsOf(files).map(({ name }) => name)

test("each has a name of its own, and every call names one", () => {
  expect(names.length).toBeGreaterThan(40)
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
  expect(names.filter((name) => !/^[a-z]+(-[a-z]+)*\/[a-z]+$/.test(name))).toEqual([])
  const product = [...files].filter(([path]) => /^(packages|apps)\//.test(path) && !path.endsWith(".test.ts"))
  const calls = product.reduce((sum, [, text]) => sum + [...text.matchAll(/^\s+failpoint\(/gm)].length, 0)
  expect(calls).toBe(names.length)
})

test("every name is in the table", () => {
  const page = failpointsPage(files)
  for (const name of names) expect(page).toContain(`| \`${name}\` |`)
})

test("nothing that ships has one", async () => {
  const programs = (await readdir("dist")).filter((name) => name.endsWith(".js"))
  expect(programs).toContain("runner.js")
  for (const program of programs) {
    const text = await readFile(`dist/${program}`, "utf8")
    expect(
      [...names, "failpoint(", "FAULT_FOLDER"].filter((one) => text.includes(one)),
      program,
    ).toEqual([])
  }
})
