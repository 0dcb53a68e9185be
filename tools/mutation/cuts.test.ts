import { existsSync, readFileSync } from "node:fs"
import { expect, test } from "vitest"
import { cutsOf } from "./cuts.ts"
import { targets } from "./targets.ts"

const taken = (text: string, ...kinds: Parameters<typeof cutsOf>[1]): string[] =>
  cutsOf(text, kinds).map((cut) => cut.text)

test("takes out checks, one at a time", () => {
  expect(taken("a()\nif (x) throw new Fault(1)\nb()", "checks")).toEqual(["a()\nb()"])
  expect(taken("if (x)\n  throw new Fault(1)\nb()", "checks")).toEqual(["b()"])
  expect(taken("if (x) {\n  throw new Fault(\n    1)\n}", "checks")).toEqual([
    "if (false && (x)) {\n  throw new Fault(\n    1)\n}",
  ])
})

test("takes out entries, headers, rules and alternatives", () => {
  expect(taken('[\n  "a",\n  "b",\n]', "entries")).toEqual(['[\n  "b",\n]', '[\n  "a",\n]'])
  expect(taken('  yield ["X-A", "1"]\n  yield ["X-B", b]', "headers")).toHaveLength(2)
  expect(taken("    iifname x drop\n  chain out {", "rules")).toEqual(["  chain out {"])
  expect(taken("/^(?:a|b|c)$/", "alternatives")).toEqual(["/^(?:b|c)$/", "/^(?:a|c)$/", "/^(?:a|b)$/"])
})

test.each(targets)("finds something to take out of $file, and there are tests to miss it", ({ file, kinds, tests }) => {
  expect(cutsOf(readFileSync(file, "utf8"), kinds).length).toBeGreaterThan(0)
  expect(tests.filter((path) => !existsSync(path))).toEqual([])
})
