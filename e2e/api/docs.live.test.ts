import { execFile } from "node:child_process"
import { symlink, writeFile } from "node:fs/promises"
import { resolve } from "node:path"
import { promisify } from "node:util"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { afterAll, expect, test } from "vitest"
import { examplesIn, testedExamples, type Example } from "./examples.ts"
import { ApiSystem } from "./system.ts"

const run = promisify(execFile)
const root = resolve(import.meta.dirname, "../..")
const system = await ApiSystem.start()
afterAll(() => system[Symbol.asyncDispose]())

/** Runs it as a reader would: in a folder of their own, with what Warren is installed with. */
async function runExample({ language, code }: Example): Promise<string> {
  await using folder = await TempFolder.make()
  await symlink(resolve(root, "node_modules"), folder.at("node_modules"))
  await writeFile(folder.at("package.json"), '{"type":"module"}')
  await writeFile(folder.at("example.ts"), code)
  const env = { ...process.env, WARREN_URL: system.url, WARREN_TOKEN: system.token, WARREN_HOME: system.home.path }
  const [program, args] =
    language === "ts"
      ? [process.execPath, ["--import", "tsx", "example.ts"]]
      : ["bash", ["-euo", "pipefail", "-c", code]]
  return (await run(program, args, { cwd: folder.path, env })).stdout
}

test("the first example of the README is the SDK's", () => {
  expect(testedExamples()[0]).toMatchObject({ place: expect.stringMatching(/^README\.md:/) as string, language: "ts" })
})

test("what an example prints is read from it", () => {
  const told =
    "before\n```ts test\nconsole.log(f(1)) // one\nf() // not this\n```\n```ts\nconsole.log(2) // nor this\n```\n"
  expect(examplesIn("a.md", told)).toEqual([
    { place: "a.md:2", language: "ts", code: "console.log(f(1)) // one\nf() // not this\n", printed: ["one"] },
  ])
})

test.each(testedExamples())("$place ($language) does what it says", async (example) => {
  const said = await runExample(example)
  if (example.language === "ts") expect(said.trimEnd().split("\n")).toEqual(example.printed)
  const left: string[] = []
  for await (const { name } of system.warren.sessions.list()) left.push(name)
  expect(left).toEqual([])
})
