import { Scope } from "@warren/base/scope.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { ManyUsers } from "../users/machine.ts"
import { pages, shellIn, type Block } from "./doc-blocks.ts"
import { marks, runnable } from "./doc-marks.ts"
import { DocReader } from "./doc-reader.ts"

const users = "docs/operating/users.md"
/** Those marked `test` are run with the SDK's. */
const blocks = (path: string): Block[] => shellIn(path).filter(({ mark }) => mark !== "test")
const shown = pages().filter((path) => path !== users && blocks(path).length > 0)

/** What a reader of a page has before they read it. */
const before: Readonly<Record<string, string>> = {
  "docs/guides/cli.md": `
    mkdir site && echo '<h1>hello</h1>' > site/index.html
    echo a-token > token.txt && echo a-key > key.txt
    echo '{"name": "website", "private": true}' > package.json && echo '# Notes' > notes.md && echo %PDF > report.pdf
    warren workspaces create website
    warren cp package.json @website: && warren cp notes.md @website:`,
}
/** What has to be so before a block. */
const beforeBlock: readonly { readonly has: string; readonly run: string }[] = [
  { has: "warren cp dev:report.pdf .", run: "warren cp report.pdf dev:/workspace/ && rm report.pdf" },
  { has: "claude mcp add --transport", run: "claude mcp remove warren" },
  // A Warren that is to be started does not run yet.
  { has: "\nwarren restart", run: "warren stop" },
]

describe.skipIf(process.getuid?.() !== 0)("every line for a shell in the docs does what it says", () => {
  const scope = new Scope()
  let reader: DocReader
  beforeAll(async () => {
    reader = scope.use(await DocReader.make())
  })
  afterAll(() => scope.close())

  describe.each(shown)("%s", (path) => {
    test.each(blocks(path))("$place", { timeout: 180_000 }, async ({ code, place }) => {
      const isFirst = blocks(path)[0]?.place === place
      if (isFirst) await reader.run(`warren status || warren start --daemon\n${before[path] ?? ""}`, path)
      for (const { has, run } of beforeBlock) if (code.includes(has)) await reader.run(run, path)
      // A page is read in one place; only what is set in a shell is forgotten between two blocks.
      await reader.run(runnable(code).code, path)
    })
  })

  test(`all of ${users}`, { timeout: 180_000 }, async () => {
    await using machine = await ManyUsers.open()
    await using root = await DocReader.make(machine.at("programs", "cli.js"), {
      WARREN_MACHINE: machine.at("machine"),
      WARREN_RUN: machine.at("run"),
      WARREN_CONTROL_ACCOUNT: machine.control,
      WARREN_PORT: String(machine.port),
      ALICE: machine.name("alice"),
    })
    for (const { code } of blocks(users)) await root.run(runnable(code).code)
  })
})

test("no exception outlives what it was made for", () => {
  const used = new Set(pages().flatMap((path) => blocks(path).flatMap(({ code }) => runnable(code).used)))
  expect(marks.filter((mark) => !used.has(mark))).toEqual([])
})
