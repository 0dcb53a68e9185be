import { existsSync, readFileSync } from "node:fs"
import type { AgentEvent } from "@warren/agents/adapter.ts"
import { agentConformance } from "@warren/agents/conformance.ts"
import type { OpenCodeSpec } from "@warren/agents/opencode/configuration.ts"
import { keeperLimits, type KeeperLimits } from "@warren/agents/opencode/keeper.ts"
import { OpenCode } from "@warren/agents/opencode/opencode.ts"
import { ScriptedLlm } from "@warren/agents/testing/llm/scripted-llm.ts"
import { dueStep, prompted, type Step } from "@warren/agents/testing/llm/step.ts"
import { systemClock } from "@warren/base/clock.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { AgentSpec } from "@warren/protocol/hub/agent-spec.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { programs } from "./programs.ts"

let folder: TempFolder
let llm: ScriptedLlm
let homes = 0
beforeAll(async () => {
  folder = await TempFolder.make()
  llm = await ScriptedLlm.listen()
})
afterAll(async () => {
  await llm[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

function specOf(more: object): OpenCodeSpec {
  const spec = AgentSpec.parse({ adapter: "opencode", cmd: programs.opencode, models: ["openai/one"], ...more })
  if (spec.adapter !== "opencode") throw new Error("not OpenCode")
  return spec
}

function openCode(more: object = {}, variables: object = {}, limits?: KeeperLimits): OpenCode {
  const { PATH } = process.env
  const env = { PATH, HOME: folder.path, OPENAI_BASE_URL: `${llm.url}/v1`, OPENAI_API_KEY: "lease", ...variables }
  const places = { cwd: folder.path, folder: folder.at(`oc${homes++}`) }
  return new OpenCode({ spec: specOf(more), clock: systemClock, env, places, limits })
}

const bash = (command: string): { tool: string; args: object } => ({
  tool: "bash",
  args: { command, description: "does it" },
})

agentConformance("OpenCode", () => openCode({ permissions: { bash: "allow" } }), {
  hello: "hello",
  sleeping: (pidFile) => prompted(bash(`echo $$ > ${pidFile}; sleep 1000`), { text: "slept" }),
  failing: prompted({ status: 400, message: "no" }),
  asking: {
    content: prompted(
      {
        tool: "question",
        args: { questions: [{ question: "Which?", header: "Pick", options: [{ label: "A", description: "a" }] }] },
      },
      { text: "the answer was heard" },
    ),
    answer: "A",
    says: "the answer was heard",
  },
})

async function turn(adapter: OpenCode, content: string, channel = "web:default"): Promise<AgentEvent[]> {
  const seen: AgentEvent[] = []
  const messageId = `m${++prompts}`
  for await (const event of adapter.prompt({ messageId, channel, content }, new AbortController().signal))
    seen.push(event)
  return seen
}
let prompts = 0
const textIn = (events: readonly AgentEvent[]): string =>
  events.map((event) => (event.type === "text" ? event.text : "")).join("")
const isTool = (event: AgentEvent): boolean => event.type === "tool"

describe("OpenCode", () => {
  test("goes along the preferred models when they fail for lack of access or time, each once, with the same prompt", async () => {
    const failures: Record<string, Step> = {
      limited: { status: 429, message: "slow down", headers: { "retry-after": "30" } },
      locked: { status: 401, message: "who are you" },
      broke: { status: 402, message: "pay first" },
      slow: { hang: true },
      late: { status: 504, message: "gateway timed out" },
    }
    const names = [...Object.keys(failures), "good"]
    await using own = await ScriptedLlm.listen((asked) => (asked.hasTools && failures[asked.model]) || dueStep(asked))
    await using adapter = openCode(
      { models: names.map((name) => `openai/${name}`), silenceMs: 10_000 },
      { OPENAI_BASE_URL: `${own.url}/v1` },
    )
    const events = await turn(adapter, "the prompt")
    const switched = events.filter((event) => event.type === "switched")
    expect(switched.map(({ from, to, cause }) => [from, to, cause])).toEqual([
      ["openai/limited", "openai/locked", "rate_limit"],
      ["openai/locked", "openai/broke", "auth"],
      ["openai/broke", "openai/slow", "billing"],
      ["openai/slow", "openai/late", "timeout"],
      ["openai/late", "openai/good", "timeout"],
    ])
    expect(textIn(events)).toBe("You said: the prompt")
    expect(events.at(-1)).toMatchObject({ reason: "end_turn", usage: { model: "openai/good", outputTokens: 7 } })
    expect(own.turns.map(({ model, prompt, said }) => [model, prompt, said])).toEqual(
      names.map((name) => [name, "the prompt", 1]),
    )
    // Nobody is left to try: the last one's failure is the end.
    const failed = await turn(adapter, prompted({ status: 402, message: "pay first" }))
    expect(failed.at(-1)).toMatchObject({ reason: "error", cause: "billing", error: "pay first" })
  })

  test("goes on with the next model in the middle, and does nothing twice", async () => {
    await using own = await ScriptedLlm.listen((asked) => {
      if (asked.model === "first" && asked.results > 0) return { status: 401, message: "expired" }
      return asked.model === "second" ? { text: `went on after ${asked.said}` } : dueStep(asked)
    })
    await using adapter = openCode({ models: ["openai/first", "openai/second"] }, { OPENAI_BASE_URL: `${own.url}/v1` })
    const file = folder.at("once")
    const events = await turn(adapter, prompted(bash(`echo x >> ${file}`), { text: "done" }))
    expect(events.filter(isTool)).toMatchObject([{ status: "pending" }, { status: "running" }, { status: "completed" }])
    expect(events.filter(({ type }) => type === "switched")).toMatchObject([{ cause: "auth" }])
    expect(textIn(events)).toBe("went on after 2")
    expect(readFileSync(file, "utf8")).toBe("x\n")
  })

  test("remembers by channel, forgets what is taken back, and goes on after a crash and a new configuration", async () => {
    await using own = await ScriptedLlm.listen((asked) =>
      asked.prompt.includes("steps") || !asked.hasTools ? dueStep(asked) : { text: `heard ${asked.said}` },
    )
    const limits = { ...keeperLimits, backoff: { baseMs: 1, capMs: 1 } }
    await using adapter = openCode({}, { OPENAI_BASE_URL: `${own.url}/v1` }, limits)
    expect(textIn(await turn(adapter, "one"))).toBe("heard 1")
    expect(textIn(await turn(adapter, "two"))).toBe("heard 2")
    expect(textIn(await turn(adapter, "one", "telegram:1"))).toBe("heard 1")
    await adapter.forget("web:default", `m${prompts - 1}`)
    expect(textIn(await turn(adapter, "two again"))).toBe("heard 2")

    const crashed = await turn(adapter, prompted(bash("kill -9 $PPID; sleep 1000"), { text: "no" }))
    expect(crashed.at(-1)).toMatchObject({ reason: "error", cause: "transport" })
    expect(crashed.findLast(isTool)).toMatchObject({ status: "error" })
    expect(textIn(await turn(adapter, "after the crash"))).toBe("heard 4")

    const { signal } = new AbortController()
    expect(await adapter.configure(specOf({}), signal)).toBe(false)
    expect(await adapter.configure(specOf({ instructions: "Be brief." }), signal)).toBe(true)
    expect(await adapter.configure(specOf({ instructions: "Be brief." }), signal)).toBe(false)
    expect(textIn(await turn(adapter, "after the change"))).toBe("heard 5")
    await adapter.forget("web:default", undefined)
    expect(textIn(await turn(adapter, "anew"))).toBe("heard 1")
  })

  test("asks before it acts when it shall, is refused by the policy when it shall not", async () => {
    await using adapter = openCode({ permissions: { bash: "ask", edit: "deny" } })
    const content = prompted(bash("echo allowed"), { text: "done" })
    const seen: AgentEvent[] = []
    for await (const event of adapter.prompt(
      { messageId: "q", channel: "web:default", content },
      new AbortController().signal,
    )) {
      seen.push(event)
      if (event.type === "question") expect(adapter.answer(event.questionId, "allow")).toBe(true)
    }
    expect(seen.find(({ type }) => type === "question")).toMatchObject({ text: "May it use bash? echo allowed" })
    expect(seen.findLast(isTool)).toMatchObject({
      status: "completed",
      result: expect.stringContaining("allowed"),
    })
    const path = folder.at("refused.txt")
    const refused = await turn(
      adapter,
      prompted({ tool: "write", args: { filePath: path, content: "x" } }, { text: "ok" }),
    )
    expect(refused.findLast(isTool)).toMatchObject({ toolName: "write", status: "error" })
    expect(existsSync(path)).toBe(false)
  })
})
