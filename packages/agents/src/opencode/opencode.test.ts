import { readFileSync } from "node:fs"
import { join } from "node:path"
import { systemClock } from "@warren/base/clock.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { AgentSpec } from "@warren/protocol/hub/agent-spec.ts"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import type { AgentEvent } from "../adapter.ts"
import { keeperLimits } from "./keeper.ts"
import { OpenCode } from "./opencode.ts"

/** A server that behaves as OpenCode does at its worst; the real one is driven in e2e/agents. */
const program = join(import.meta.dirname, "../../fixtures/opencode-server.mjs")
const never = new AbortController().signal
let folder: TempFolder
beforeEach(async () => void (folder = await TempFolder.make()))
afterEach(() => folder[Symbol.asyncDispose]())

function openCode(env: object = {}, more: object = {}): OpenCode {
  const spec = AgentSpec.parse({ adapter: "opencode", cmd: program, ...more })
  if (spec.adapter !== "opencode") throw new Error("not OpenCode")
  const limits = { ...keeperLimits, crashesMax: 3, backoff: { baseMs: 1, capMs: 4 } }
  const all = { PATH: process.env["PATH"], HOME: folder.path, FAKE_LOG: folder.at("log"), ...env }
  return new OpenCode({
    spec,
    clock: systemClock,
    env: all,
    places: { cwd: folder.path, folder: folder.at("own") },
    limits,
  })
}

async function turn(adapter: OpenCode, content: string, more: object = {}, signal = never): Promise<AgentEvent[]> {
  const seen: AgentEvent[] = []
  for await (const event of adapter.prompt({ messageId: "m", channel: "web:default", content, ...more }, signal))
    seen.push(event)
  return seen
}
const starts = (): number => readFileSync(folder.at("log"), "utf8").split("\n").length - 1

describe("OpenCode", () => {
  test("what an earlier turn still says is not taken for this one, nor its end", async () => {
    await using adapter = openCode()
    await adapter.start(never)
    for (let n = 0; n < 3; n++)
      expect(await turn(adapter, "stale")).toMatchObject([{ type: "text", text: "mine" }, { reason: "end_turn" }])
  })

  test("an end that is said twice is one, and the next turn is not ended by it", async () => {
    await using adapter = openCode()
    await adapter.start(never)
    expect(await turn(adapter, "twice")).toMatchObject([{ reason: "error", cause: "auth", error: "bad key" }])
    expect(await turn(adapter, "stale")).toMatchObject([{ text: "mine" }, { reason: "end_turn" }])
    expect(await turn(adapter, "nothing")).toMatchObject([{ reason: "error", error: "Model not found" }])
  })

  test("what was said while nobody could hear it is told afterwards, once", async () => {
    await using adapter = openCode()
    await adapter.start(never)
    const events = await turn(adapter, "gap")
    expect(events.map((event) => (event.type === "text" ? event.text : "")).join("")).toBe("begun, and done")
    expect(events.at(-1)).toMatchObject({
      reason: "end_turn",
      usage: { inputTokens: 1, outputTokens: 2, model: "p/m" },
    })
  })

  test("one that hears no abort is ended, and another takes its place", async () => {
    await using adapter = openCode()
    await adapter.start(never)
    const stop = new AbortController()
    const running = turn(adapter, "stubborn", {}, stop.signal)
    setImmediate(() => stop.abort())
    expect(await running).toMatchObject([{ reason: "canceled", cause: "cancelled" }])
    expect(await turn(adapter, "stale")).toMatchObject([{ text: "mine" }, { reason: "end_turn" }])
    expect(starts()).toBe(2)
  })

  test("one that dies in a turn says so, and is there again for the next", async () => {
    await using adapter = openCode()
    await adapter.start(never)
    expect(await turn(adapter, "exit")).toMatchObject([
      { reason: "error", cause: "transport", error: expect.stringContaining("with 7") },
    ])
    expect(await turn(adapter, "stale")).toMatchObject([{ text: "mine" }, { reason: "end_turn" }])
  })

  test("one that dies again and again is not started for ever; each who asks is told why", async () => {
    await using adapter = openCode({ FAKE_CRASHES: "1" })
    const why = { code: "unavailable", message: expect.stringContaining("out of luck") }
    await expect(adapter.start(never)).rejects.toMatchObject(why)
    expect(starts()).toBe(3)
    expect(await turn(adapter, "stale")).toMatchObject([{ cause: "start", error: expect.stringContaining("in a row") }])
    expect(starts()).toBe(4)
    await using none = openCode({}, { cmd: "/no/such/program" })
    await expect(none.start(never)).rejects.toMatchObject({ code: "not_found" })
  })

  test("a model that it does not know yet makes it start again, once; one that is none is refused", async () => {
    await using adapter = openCode()
    await adapter.start(never)
    for (let n = 0; n < 2; n++)
      expect(await turn(adapter, "stale", { model: "openai/new" })).toMatchObject([{ text: "mine" }, {}])
    expect(starts()).toBe(2)
    expect(await turn(adapter, "stale", { model: "new" })).toMatchObject([{ cause: "start" }])
    expect(await turn(adapter, "stale")).toMatchObject([{ text: "mine" }, {}])
  })

  test("is another agent's no more than its own: what it cannot become is refused", async () => {
    await using adapter = openCode()
    await expect(adapter.configure({ adapter: "scripted" }, never)).rejects.toMatchObject({ code: "invalid" })
  })
})
