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
    seen.push(answered(adapter, event))
  return seen
}

/** Whoever asks is allowed. */
function answered(adapter: OpenCode, event: AgentEvent): AgentEvent {
  if (event.type === "question") expect(adapter.answer(event.questionId, "allow")).toBe(true)
  return event
}
let prompts = 0
const textIn = (events: readonly AgentEvent[]): string =>
  events.map((event) => (event.type === "text" ? event.text : "")).join("")
const isTool = (event: AgentEvent): boolean => event.type === "tool"

/** Starting it takes seconds where a machine has other things to do. */
const slowMs = 240_000

describe("OpenCode", () => {
  test(
    "goes along the preferred models when they fail for lack of access or time, each once, with the same prompt",
    async () => {
      const failures: Record<string, Step> = {
        limited: { status: 429, message: "slow down", headers: { "retry-after": "30" } },
        locked: { status: 401, message: "who are you" },
        broke: { status: 402, message: "pay first" },
        slow: { hang: true },
        late: { status: 504, message: "gateway timed out" },
      }
      const names = [...Object.keys(failures), "good"]
      await using own = await ScriptedLlm.listen((asked) => {
        if (asked.prompt === "the prompt" && asked.hasTools) return failures[asked.model] ?? dueStep(asked)
        // The first begins the work, and cannot end it.
        if (asked.model === "limited" && asked.results > 0) return { status: 401, message: "expired" }
        return asked.model === "locked" ? { text: `went on after ${asked.said}` } : dueStep(asked)
      })
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

      // In the middle of the work: what was done is not done again.
      const file = folder.at("once")
      const went = await turn(adapter, prompted(bash(`echo x >> ${file}`), { text: "done" }), "telegram:1")
      expect(went.filter(isTool)).toMatchObject([{ status: "pending" }, { status: "running" }, { status: "completed" }])
      expect(went.filter(({ type }) => type === "switched")).toMatchObject([{ cause: "auth" }])
      expect(textIn(went)).toBe("went on after 2")
      expect(readFileSync(file, "utf8")).toBe("x\n")
    },
    slowMs,
  )

  test(
    "remembers by channel, forgets what is taken back, and goes on after a crash and a new configuration",
    async () => {
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
      const careful = specOf({ instructions: "Be brief.", permissions: { bash: "ask", edit: "deny" } })
      expect(await adapter.configure(specOf({}), signal)).toBe(false)
      expect(await adapter.configure(careful, signal)).toBe(true)
      expect(await adapter.configure(careful, signal)).toBe(false)
      expect(textIn(await turn(adapter, "after the change"))).toBe("heard 5")
      await adapter.forget("web:default", undefined)
      expect(textIn(await turn(adapter, "anew"))).toBe("heard 1")

      // It asks before it acts now, or is refused by the policy.
      const asked = await turn(adapter, prompted(bash("echo allowed"), { text: "done" }))
      expect(asked.find(({ type }) => type === "question")).toMatchObject({ text: "May it use bash? echo allowed" })
      expect(asked.findLast(isTool)).toMatchObject({ status: "completed", result: expect.stringContaining("allowed") })
      const path = folder.at("refused.txt")
      const write = { tool: "write", args: { filePath: path, content: "x" } }
      const refused = await turn(adapter, prompted(write, { text: "ok" }))
      expect(refused.findLast(isTool)).toMatchObject({ toolName: "write", status: "error" })
      expect(existsSync(path)).toBe(false)
    },
    slowMs,
  )
})
