import { readFileSync } from "node:fs"
import { join } from "node:path"
import { AgentSpec } from "@warren/protocol/hub/agent-spec.ts"
import { describe, expect, test } from "vitest"
import type { AgentEvent } from "../adapter.ts"
import { agentConformance } from "../conformance.ts"
import { Command } from "./command.ts"
import { StreamJson } from "./stream-json.ts"

const fixtures = join(import.meta.dirname, "../../fixtures")
const streaming = join(fixtures, "stream-json-agent.mjs")

function commandOf(spec: object): Command {
  const parsed = AgentSpec.parse({ adapter: "command", ...spec })
  if (parsed.adapter !== "command") throw new Error("not a command")
  return new Command(parsed, process.env)
}

const shell =
  'case "$1" in sleep*) echo $$ > ${1#sleep }; sleep 1000;; fail) echo no >&2; exit 7;; *) echo "said: $1";; esac'
agentConformance("a program of lines", () => commandOf({ cmd: "sh", args: ["-c", shell, "sh"] }), {
  hello: "hello",
  sleeping: (pidFile) => `sleep ${pidFile}`,
  failing: "fail",
})

agentConformance(
  "a program that speaks stream-json",
  () => commandOf({ cmd: process.execPath, args: [streaming], speaks: "stream-json", permissions: "ask" }),
  {
    hello: "hello",
    sleeping: (pidFile) => `sleep ${pidFile}`,
    failing: "fail",
    asking: { content: "permission", answer: "allow", says: "permission: allow" },
  },
)

agentConformance(
  "a program that hears no interrupt",
  () => commandOf({ cmd: process.execPath, args: [streaming, "--stubborn"], speaks: "stream-json" }),
  { hello: "hello", sleeping: (pidFile) => `sleep ${pidFile}`, failing: "die" },
)

async function turn(adapter: Command, content: string, channel = "web:default"): Promise<AgentEvent[]> {
  const seen: AgentEvent[] = []
  for await (const event of adapter.prompt({ messageId: "m", channel, content }, new AbortController().signal))
    seen.push(event)
  return seen
}

describe("a program of lines", () => {
  test("gets a prompt that is too long for an argument on its input", async () => {
    await using adapter = commandOf({ cmd: "sh", args: ["-c", 'wc -c; echo "$#"', "sh"] })
    const events = await turn(adapter, "x".repeat(150_000))
    expect(events.map((event) => (event.type === "text" ? event.text : "")).join("")).toBe("150000\n0\n")
  })

  test("that is not there says so", async () => {
    await using adapter = commandOf({ cmd: "/no/such/program" })
    expect(await turn(adapter, "hi")).toMatchObject([{ reason: "error", cause: "start" }])
  })

  test("says with its end what it complained about", async () => {
    await using adapter = commandOf({ cmd: "sh", args: ["-c", "echo broken >&2; exit 2"] })
    expect(await turn(adapter, "hi")).toMatchObject([
      { reason: "error", cause: "verdict", error: "it ended with 2: broken" },
    ])
  })
})

describe("stream-json", () => {
  test("one conversation for each channel, which goes on after a crash", async () => {
    await using adapter = commandOf({ cmd: process.execPath, args: [streaming], speaks: "stream-json" })
    expect(await turn(adapter, "a")).toMatchObject([
      { text: "turn 1: a" },
      { reason: "end_turn", usage: { inputTokens: 3, outputTokens: 4 } },
    ])
    expect(await turn(adapter, "b")).toMatchObject([{ text: "turn 2: b" }, { reason: "end_turn" }])
    expect(await turn(adapter, "a", "telegram:1")).toMatchObject([{ text: "turn 1: a" }, { reason: "end_turn" }])
    expect(await turn(adapter, "die")).toMatchObject([{ reason: "error", cause: "verdict" }])
    expect(await turn(adapter, "c")).toMatchObject([{ text: "resumed, turn 1: c" }, { reason: "end_turn" }])
    await adapter.forget("web:default")
    expect(await turn(adapter, "d")).toMatchObject([{ text: "turn 1: d" }, { reason: "end_turn" }])
  })

  test("is given or refused permission by the policy", async () => {
    for (const [permissions, says] of [
      ["allow", "permission: allow"],
      ["deny", "permission: deny"],
    ] as const) {
      await using adapter = commandOf({ cmd: process.execPath, args: [streaming], speaks: "stream-json", permissions })
      expect(await turn(adapter, "permission")).toMatchObject([{ text: says }, { reason: "end_turn" }])
    }
  })

  const read = (name: string): AgentEvent[] => {
    const words = new StreamJson()
    const lines = readFileSync(join(fixtures, `${name}.jsonl`), "utf8")
      .trim()
      .split("\n")
    return lines.flatMap((line) => words.read(line).events)
  }

  test("a recording of Claude Code with a tool call", () => {
    expect(read("claude-bash")).toMatchObject([
      {
        type: "tool",
        callId: "toolu_2_0",
        toolName: "Bash",
        args: { command: "touch made.txt; id -un" },
        status: "running",
      },
      {
        type: "tool",
        callId: "toolu_2_0",
        toolName: "Bash",
        status: "error",
        error: expect.stringContaining("blocked"),
      },
      { type: "text", text: "done" },
      {
        type: "end",
        reason: "end_turn",
        usage: { inputTokens: 38150, outputTokens: 14, model: "claude-opus-4-8[1m]" },
      },
    ])
  })

  test("a recording with partial messages says nothing twice", () => {
    expect(read("claude-partial")).toMatchObject([
      { type: "text", text: "You said: he" },
      { type: "text", text: "llo" },
      { type: "end", reason: "end_turn" },
    ])
  })

  test("what it does not know passes by", () => {
    const words = new StreamJson()
    for (const line of [
      "",
      "{",
      "[]",
      "1",
      '{"type":"news"}',
      '{"type":"assistant"}',
      '{"type":"assistant","message":{"content":[{"type":"hologram"}]}}',
    ])
      expect(words.read(line)).toEqual({ events: [] })
  })
})
