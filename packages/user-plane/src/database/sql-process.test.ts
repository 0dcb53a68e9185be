import { collected } from "@warren/base/testing/collected.ts"
import { bundleProgram } from "@warren/base/testing/program.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { expect, test } from "vitest"
import { SqlProcess } from "./sql-process.ts"

const never = new AbortController().signal
const request = { purpose: "query", sql: "SELECT 1 AS one", parameters: [], rowsMax: 10 } as const

test("an answer is its caller's alone: a process that goes on holds none of them", async () => {
  await using folder = await TempFolder.make()
  const program = await bundleProgram(new URL("child.ts", import.meta.url), folder)
  await using one = new SqlProcess(program, folder.at("user.db"))
  const answers = await (async () => {
    const first = await one.ask(request, never)
    expect(first).toMatchObject({ result: { rows: [[1]] } })
    const second = await one.ask(request, never)
    return [new WeakRef(first), new WeakRef(second)]
  })()
  for (const answer of answers) await collected(answer)
  expect(await one.ask(request, never)).toMatchObject({ result: { rows: [[1]] } })
})

test("whoever asks one that has ended is told so, each time", async () => {
  await using folder = await TempFolder.make()
  await using one = new SqlProcess("/nowhere/child.js", folder.at("user.db"))
  await expect(one.ask(request, never)).rejects.toMatchObject({ code: "limit" })
  await expect(one.ask(request, never)).rejects.toMatchObject({ code: "limit" })
  expect(one.isSpent).toBe(true)
})
