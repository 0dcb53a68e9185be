import { existsSync, readFileSync } from "node:fs"
import { expect, test } from "vitest"
import { cutsOf } from "./cuts.ts"
import { held } from "./held.ts"
import { targets } from "./targets.ts"

const taken = (text: string, ...kinds: Parameters<typeof cutsOf>[1]): string[] =>
  cutsOf(text, kinds).map((cut) => cut.text)

test("takes out checks, one at a time", () => {
  expect(taken("if (x) throw new Fault(1)\nb()", "checks")).toEqual(["if (false) throw new Fault(1)\nb()"])
  expect(taken("if (x) {\n  a()\n  throw 1\n}", "checks")).toEqual(["if (false) {\n  a()\n  throw 1\n}"])
  expect(taken("if (x) a()", "checks", "returns")).toEqual([])
  expect(taken("for (const a of b) if (a) continue", "returns")).toEqual(["for (const a of b) if (false) continue"])
  expect(taken("check(a)\nb()", "calls")).toEqual([";\nb()"])
})

test("takes out one of several conditions, a filter, a flag of a cookie, a header's name", () => {
  expect(taken("const a = b || c || d", "operands")).toEqual([
    ...["const a = ((c) || (d))", "const a = ((b) || (d))", "const a = ((b) || (c))"],
  ])
  expect(taken("const a = b && (c || d)", "operands")).toEqual([
    ...["const a = ((c || d))", "const a = ((b))", "const a = b && (((d)))", "const a = b && (((c)))"],
  ])
  expect(taken("f({ ...(a && { a }) })", "operands")).toEqual([])
  expect(taken("const a = b.filter((c) => c.d).e", "filters")).toEqual(["const a = b.e"])
  expect(taken('const a = `P=${x}; HttpOnly${y ? "; Secure" : ""}`', "pieces")).toEqual([
    'const a = `${x}; HttpOnly${y ? "; Secure" : ""}`',
    'const a = `P=${x}${y ? "; Secure" : ""}`',
    'const a = `P=${x}; HttpOnly${y ? "" : ""}`',
  ])
  expect(taken('c.header("x-frame-options", "DENY")', "names")).toEqual(['c.header("x-nothing", "DENY")'])
})

test("takes out nothing after which it would not be code", () => {
  expect(taken("f(\n  [\n    `a`,\n  ].join(),\n)", "entries")).toEqual(["f(\n  [\n  ].join(),\n)"])
  expect(taken("let a = 1 +\n  `a`,\n  { c } = d", "entries")).toEqual([])
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

test("every reason is for something that is taken out", () => {
  const cuts = targets.map(({ file, kinds }) => ({ file, cuts: cutsOf(readFileSync(file, "utf8"), kinds) }))
  const stale = held().filter(
    (one) => !cuts.some(({ file, cuts: all }) => file.endsWith(one.file) && all.some(({ what }) => what === one.what)),
  )
  expect(stale).toEqual([])
  expect(held().filter(({ why }) => why === "")).toEqual([])
})
