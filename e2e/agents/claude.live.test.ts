import { readFileSync, writeFileSync } from "node:fs"
import type { AgentEvent } from "@warren/agents/adapter.ts"
import { Command } from "@warren/agents/command/command.ts"
import { agentConformance } from "@warren/agents/conformance.ts"
import { ScriptedLlm } from "@warren/agents/testing/llm/scripted-llm.ts"
import { prompted } from "@warren/agents/testing/llm/step.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { AgentSpec } from "@warren/protocol/hub/agent-spec.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { programs } from "./programs.ts"

const slowMs = 180_000
let folder: TempFolder
let llm: ScriptedLlm
beforeAll(async () => {
  folder = await TempFolder.make()
  llm = await ScriptedLlm.listen()
})
afterAll(async () => {
  await llm[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

function claude(more: object = {}): Command {
  const spec = AgentSpec.parse({ adapter: "command", cmd: programs.claude, speaks: "claude", ...more })
  if (spec.adapter !== "command") throw new Error("not a command")
  const { PATH } = process.env
  const env = { PATH, HOME: folder.path, ANTHROPIC_BASE_URL: llm.url, ANTHROPIC_API_KEY: "lease" }
  return new Command(spec, env, folder.path)
}

const bash = (command: string): { tool: string; args: object } => ({
  tool: "Bash",
  args: { command, description: "does it" },
})

agentConformance("Claude Code", () => claude(), {
  hello: "hello",
  sleeping: (pidFile) => prompted(bash(`echo $$ > ${pidFile}; sleep 1000`), { text: "slept" }),
  failing: prompted({ status: 429, message: "slow down" }),
})

const textIn = (events: readonly AgentEvent[]): string =>
  events.map((event) => (event.type === "text" ? event.text : "")).join("")

async function turn(adapter: Command, content: string, answer = "allow"): Promise<AgentEvent[]> {
  const seen: AgentEvent[] = []
  for await (const event of adapter.prompt(
    { messageId: "m", channel: "web:default", content },
    new AbortController().signal,
  )) {
    seen.push(event)
    if (event.type === "question") expect(adapter.answer(event.questionId, answer)).toBe(true)
  }
  return seen
}

describe("Claude Code", () => {
  test(
    "reads a file, edits it, and answers in pieces; asks before it acts when it shall",
    async () => {
      await using adapter = claude({ permissions: "ask" })
      const file = folder.at("greeting.txt")
      writeFileSync(file, "hello world\n")
      const edit = { file_path: file, old_string: "hello", new_string: "good morning" }
      const content = prompted(
        { tool: "Read", args: { file_path: file } },
        { tool: "Edit", args: edit },
        bash(`cat ${file} > ${folder.at("shown.txt")}`),
        { text: "All is done, and well.", pieces: 5 },
      )
      const events = await turn(adapter, content)
      expect(events.filter(({ type }) => type === "question").length).toBeGreaterThan(0)
      const tools = events.filter((event) => event.type === "tool")
      expect(tools.map(({ toolName, status }) => `${toolName} ${status}`)).toEqual([
        ...["Read running", "Read completed", "Edit running", "Edit completed"],
        ...["Bash running", "Bash completed"],
      ])
      expect(textIn(events)).toBe("All is done, and well.")
      expect(events.filter(({ type }) => type === "text").length).toBeGreaterThan(1)
      expect(events.at(-1)).toMatchObject({ type: "end", reason: "end_turn", usage: { outputTokens: 28 } })
      expect(readFileSync(folder.at("shown.txt"), "utf8")).toBe("good morning world\n")

      const refused = await turn(adapter, prompted(bash(`rm ${file}`), { text: "I could not." }), "deny")
      expect(refused.findLast(({ type }) => type === "tool")).toMatchObject({ status: "error" })
      expect(readFileSync(file, "utf8")).toBe("good morning world\n")
    },
    slowMs,
  )

  test.each([
    [401, "auth"],
    [402, "billing"],
    [429, "rate_limit"],
  ])(
    "says why it failed when the model answers %i, and soon",
    async (status, cause) => {
      await using adapter = claude()
      const before = llm.turns.length
      const events = await turn(adapter, prompted({ status, message: "scripted" }))
      expect(events).toMatchObject([{ reason: "error", cause, error: expect.stringContaining("scripted") }])
      expect(llm.turns.length - before).toBeLessThanOrEqual(2)
      expect(textIn(await turn(adapter, "go on"))).toContain("You said: go on")
    },
    slowMs,
  )
})
