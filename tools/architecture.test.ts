import { describe, expect, test } from "vitest"
import { violations, type Rule } from "./architecture.ts"
import { sourceFiles } from "./source-files.ts"

const manifest = (...names: string[]): string =>
  JSON.stringify({ dependencies: Object.fromEntries(names.map((name) => [`@warren/${name}`, "*"])) })

const everything = manifest("base", "protocol", "drivers", "agents", "user-plane", "sdk")

const rulesBroken = (files: Record<string, string>): Rule[] =>
  violations(new Map(Object.entries(files))).map((violation) => violation.rule)

test("the real tree is clean", async () => {
  const files = await sourceFiles(".")
  expect(files.size).toBeGreaterThan(40)
  expect(violations(files)).toEqual([])
})

describe("who may import whom", () => {
  const may = (file: string, specifier: string): Rule[] =>
    rulesBroken({
      [file]: `import { x } from "${specifier}"`,
      [`${file.split("/").slice(0, 2).join("/")}/package.json`]: everything,
    })

  test.each([
    ["packages/base/src/a.ts", "@warren/protocol/b.ts"],
    ["packages/protocol/src/a.ts", "@warren/drivers/b.ts"],
    ["packages/drivers/src/a.ts", "@warren/agents/b.ts"],
    ["packages/agents/src/a.ts", "@warren/user-plane/b.ts"],
    ["packages/user-plane/src/a.ts", "@warren/sdk/b.ts"],
    ["packages/sdk/src/a.ts", "@warren/drivers/b.ts"],
    ["packages/mcp/src/a.ts", "@warren/user-plane/b.ts"],
    ["packages/e2b/src/a.ts", "@warren/drivers/b.ts"],
    ["apps/control/src/a.ts", "@warren/user-plane/b.ts"],
    ["apps/control/src/a.ts", "@warren/drivers/b.ts"],
    ["apps/supervisor/src/a.ts", "@warren/drivers/b.ts"],
    ["apps/cli/src/a.ts", "@warren/user-plane/b.ts"],
    ["apps/web/src/a.tsx", "@warren/agents/b.ts"],
    ["apps/runner/src/a.ts", "../../control/src/b.ts"],
    ["apps/runner/src/a.ts", "@warren/control/b.ts"],
    ["apps/runner/src/a.ts", "../../../tools/b.ts"],
    ["packages/base/src/a.ts", "../../../bench/b.ts"],
    ["packages/drivers/src/a.ts", "../../../init/build.ts"],
    ["bench/a.ts", "../tools/b.ts"],
    ["init/a.ts", "../tools/b.ts"],
  ])("%s may not import %s", (file, specifier) => expect(may(file, specifier)).toEqual(["boundary"]))

  test.each([
    ["packages/base/src/a.ts", "./b.ts"],
    ["packages/base/src/a.ts", "node:fs"],
    ["packages/protocol/src/a.ts", "@warren/base/b.ts"],
    ["packages/user-plane/src/a.ts", "@warren/drivers/b.ts"],
    ["packages/drivers/src/a.test.ts", "../../../init/build.ts"],
    ["apps/runner/src/a.ts", "@warren/user-plane/b.ts"],
    ["apps/supervisor/src/a.ts", "@warren/agents/b.ts"],
    ["apps/cli/src/a.ts", "@warren/sdk/b.ts"],
    ["tools/a.ts", "@warren/user-plane/b.ts"],
    ["tools/a.ts", "../apps/control/src/settings.ts"],
    ["tools/bench.ts", "../bench/main.ts"],
    ["launch/test/a.ts", "../build.ts"],
  ])("%s may import %s", (file, specifier) => expect(may(file, specifier)).toEqual([]))
})

describe("every way to import is seen", () => {
  test.each([
    `import type { X } from "@warren/drivers/b.ts"`,
    `import { type X } from "@warren/drivers/b.ts"`,
    `import "@warren/drivers/b.ts"`,
    `export * from "@warren/drivers/b.ts"`,
    `export { x } from "@warren/drivers/b.ts"`,
    `export const load = async () => await import("@warren/drivers/b.ts")`,
    `export type X = import("@warren/drivers/b.ts").X`,
  ])("%s", (source) => {
    const files = { "apps/control/src/a.ts": source, "apps/control/package.json": manifest("drivers") }
    expect(rulesBroken(files)).toEqual(["boundary"])
  })
})

const planted: Record<Exclude<Rule, "boundary">, Record<string, string>> = {
  unplaced: { "packages/kitchen/src/sink.ts": "export const sink = 1" },
  "test-import": { "packages/base/src/a.ts": `import "./b.test.ts"`, "packages/base/src/b.test.ts": "test()" },
  "by-name": {
    "packages/protocol/src/a.ts": `import "../../base/src/b.ts"`,
    "packages/protocol/package.json": manifest("base"),
  },
  declared: { "packages/protocol/src/a.ts": `import "@warren/base/b.ts"`, "packages/protocol/package.json": "{}" },
  computed: { "packages/base/src/a.ts": "export const open = (name: string) => import(`./${name}.ts`)" },
  barrel: { "packages/base/src/index.ts": `export * from "./a.ts"; export { b } from "./b.ts"` },
  "vague-name": { "packages/base/src/utils.ts": "export const x = 1" },
  cycle: {
    "packages/base/src/a.ts": `import { b } from "./b.ts"`,
    "packages/base/src/b.ts": `import { c } from "./c.ts"`,
    "packages/base/src/c.ts": `export { a } from "./a.ts"`,
  },
}

describe("each rule catches what it is for", () => {
  test.each(Object.entries(planted))("%s", (rule, files) => expect(rulesBroken(files)).toEqual([rule]))

  test("a bare package name", () => {
    const files = { "apps/runner/src/a.ts": `import "@warren/base"`, "apps/runner/package.json": manifest("base") }
    expect(rulesBroken(files)).toEqual(["by-name"])
  })

  test("a vague folder", () => {
    expect(rulesBroken({ "packages/base/src/helpers/path.ts": "export const x = 1" })).toEqual(["vague-name"])
  })

  test("a cycle across packages, and two cycles", () => {
    const files = {
      "tools/a.ts": `import "./b.ts"`,
      "tools/b.ts": `import "./a.ts"`,
      "bench/c.ts": `import "./d.ts"`,
      "bench/d.ts": `await import("./c.ts")`,
    }
    expect(rulesBroken(files)).toEqual(["cycle", "cycle"])
  })
})

describe("what is not wrong", () => {
  test("types that refer to each other", () => {
    const files = { "bench/a.ts": `import type { B } from "./b.ts"`, "bench/b.ts": `import { a } from "./a.ts"` }
    expect(rulesBroken(files)).toEqual([])
  })

  test("an index that does something", () => {
    expect(rulesBroken({ "packages/base/src/index.ts": `export * from "./a.ts"; export const b = 1` })).toEqual([])
  })
})
