import { existsSync, readFileSync } from "node:fs"
import { writeFile } from "node:fs/promises"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { describe, expect, test } from "vitest"
import { ApiSystem } from "../api/system.ts"
import { Canary } from "./canary.ts"
import { record } from "./results.ts"

/** Of each kind of what passes through a control plane on its way to a runner and back. */
const passing = {
  secret: new Canary(),
  env: new Canary(),
  input: new Canary(),
  output: new Canary(),
  file: new Canary(),
  prompt: new Canary(),
  statement: new Canary(),
  refused: new Canary(),
}
/** So that the search is known to find what is held. */
const held = new Canary()

describe.skipIf(process.getuid?.() !== 0)("the control plane's heap", () => {
  test("holds nothing of what went through it, once it has", { timeout: 120_000 }, async () => {
    await using folder = await TempFolder.make()
    await writeFile(folder.at("hook.cjs"), hookText(folder.at("heap")))
    await using system = await ApiSystem.start({ NODE_OPTIONS: `--require=${folder.at("hook.cjs")}` })
    await passThrough(system)
    process.kill(system.pids.control, "SIGUSR2")
    await expect.poll(() => existsSync(folder.at("heap")), { timeout: 60_000 }).toBe(true)
    const heap = readFileSync(folder.at("heap"))
    const found = Object.entries({ ...passing, held }).filter(([, canary]) => canary.in(heap) !== undefined)
    record("canaries-heap", { cases: Object.keys(passing).length, bad: found.length - 1, heapBytes: heap.length })
    expect(found.map(([name]) => name)).toEqual(["held"])
  })
})

/** Told to, the control plane collects its garbage and writes down what can still be reached; the name comes when all of it is there. */
function hookText(path: string): string {
  return `
if (process.argv[1]?.includes("control")) {
  globalThis.held = { text: "${held.text}" }
  const v8 = require("node:v8")
  v8.setFlagsFromString("--expose-gc")
  const collect = require("node:vm").runInNewContext("gc")
  process.once("SIGUSR2", () => {
    collect()
    setTimeout(() => {
      collect()
      v8.writeHeapSnapshot("${path}.part")
      require("node:fs").renameSync("${path}.part", "${path}")
    }, 500)
  })
}`
}

async function passThrough(system: ApiSystem): Promise<void> {
  const ask = async (path: string, method: string, body: string): Promise<Response> => {
    const answer = await system.fetch(path, { method, body })
    if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
    return answer
  }
  const post = async (path: string, body: object, method = "POST"): Promise<Record<string, unknown>> =>
    (await (await ask(path, method, JSON.stringify(body))).json()) as Record<string, unknown>
  await post("/v1/secrets/GIVEN", { value: passing.secret.text }, "PUT")
  const env = { PLANTED: passing.env.text }
  const { id } = await post("/v1/sessions", { name: "planted", env, secrets: ["GIVEN"], network: { mode: "none" } })
  const at = `/v1/sessions/${String(id)}`
  const said = { cmd: "cat", stdin: passing.input.text }
  expect((await post(`${at}/exec`, said))["stdout"]).toBe(passing.input.text)
  const hidden = Buffer.from(passing.output.text).toString("base64")
  expect((await post(`${at}/exec`, { cmd: `echo ${hidden} | base64 -d` }))["stdout"]).toBe(passing.output.text)
  const file = `${at}/files/content?path=/home/user/kept`
  await (await ask(file, "PUT", passing.file.text)).arrayBuffer()
  expect(await (await system.fetch(file)).text()).toBe(passing.file.text)
  await post(`${at}/agent`, { spec: { adapter: "scripted" } })
  const script = JSON.stringify({ steps: [{ text: passing.prompt.text }] })
  await post(`${at}/agent/prompts`, { text: `[[script:${script}]]` })
  await post("/v1/db/query", { sql: "SELECT ?", parameters: [passing.statement.text] })
  const refused = JSON.stringify({ value: [passing.refused.text] })
  expect((await system.fetch("/v1/secrets/KEPT", { method: "PUT", body: refused })).status).toBe(400)
}
