import { systemClock } from "@warren/base/clock.ts"
import { expect, test } from "vitest"
import type { AgentEvent } from "../adapter.ts"
import { agentConformance } from "../conformance.ts"
import { Scripted } from "./scripted.ts"

const written = (...steps: object[]): string => `[[script:${JSON.stringify({ steps })}]]`
const open = (): Scripted => new Scripted({ clock: systemClock, env: process.env })

agentConformance("a scripted one", open, {
  hello: "hello",
  sleeping: (pidFile) => written({ run: `echo $$ > ${pidFile}; sleep 1000` }),
  failing: written({ fail: "no", cause: "rate_limit" }),
  asking: { content: written({ question: "May I?", options: ["yes"] }), answer: "yes", says: "Answer: yes" },
})

async function events(content: string): Promise<AgentEvent[]> {
  const seen: AgentEvent[] = []
  const prompt = { messageId: "m", channel: "web:default", content }
  for await (const event of open().prompt(prompt, new AbortController().signal)) seen.push(event)
  return seen
}

test("a scripted agent does what its script says, step by step", async () => {
  expect(
    await events(written({ text: "abcd", pieces: 2 }, { tool: "read", args: { path: "a" }, result: "x" })),
  ).toEqual([
    { type: "text", text: "ab" },
    { type: "text", text: "cd" },
    { type: "tool", callId: "m.2", toolName: "read", args: { path: "a" }, status: "running" },
    { type: "tool", callId: "m.2", toolName: "read", args: { path: "a" }, status: "completed", result: "x" },
    { type: "end", reason: "end_turn" },
  ])
  expect(await events(written({ run: "echo out; echo err >&2; exit 3" }))).toMatchObject([
    { status: "running" },
    { status: "error", error: "exit 3", result: "out\nerr\n" },
    { reason: "end_turn" },
  ])
})

test("a script that is none is said to be none", async () => {
  expect(await events("[[script:{]]")).toMatchObject([{ reason: "error", cause: "verdict" }])
  expect(await events(written({ dance: true }))).toMatchObject([{ reason: "error", cause: "verdict" }])
})
