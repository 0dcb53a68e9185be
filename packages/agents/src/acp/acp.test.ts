import { join } from "node:path"
import { AgentSpec } from "@warren/protocol/hub/agent-spec.ts"
import { describe, expect, test } from "vitest"
import type { AgentEvent } from "../adapter.ts"
import { agentConformance } from "../conformance.ts"
import { Acp } from "./acp.ts"
import { AcpWords } from "./acp-words.ts"

const agent = join(import.meta.dirname, "../../fixtures/acp-agent.mjs")

function acpOf(flags: string[] = [], more: object = {}): Acp {
  const spec = AgentSpec.parse({ adapter: "acp", cmd: process.execPath, args: [agent, ...flags], ...more })
  if (spec.adapter !== "acp") throw new Error("not ACP")
  return new Acp(spec, process.env, process.cwd())
}

const sleeping = (pidFile: string): string => `sleep ${pidFile}`
agentConformance("an ACP agent", () => acpOf([], { permissions: "ask" }), {
  ...{ hello: "hello", sleeping, failing: "fail" },
  asking: { content: "permission", answer: "allow", says: "permission: yes" },
})
agentConformance("an ACP agent that cannot be cancelled", () => acpOf(["--stubborn"]), {
  ...{ hello: "hello", sleeping, failing: "die" },
})

async function turn(adapter: Acp, content: string, channel = "web:default"): Promise<AgentEvent[]> {
  const seen: AgentEvent[] = []
  for await (const event of adapter.prompt({ messageId: "m", channel, content }, new AbortController().signal))
    seen.push(event)
  return seen
}

describe("an ACP agent", () => {
  test("has a session for each channel; after a crash it goes on where it can, and begins anew where not", async () => {
    for (const [flags, after] of [
      [["--loads"], "turn 101: "],
      [[], "turn 1: "],
    ] as const) {
      await using adapter = acpOf([...flags])
      expect(await turn(adapter, "a")).toMatchObject([{ text: "turn 1: " }, { text: "a" }, { reason: "end_turn" }])
      expect(await turn(adapter, "b")).toMatchObject([{ text: "turn 2: " }, {}, {}])
      expect(await turn(adapter, "a", "telegram:1")).toMatchObject([{ text: "turn 1: " }, {}, {}])
      expect(await turn(adapter, "die")).toMatchObject([
        { cause: "transport", error: expect.stringContaining("with 3") },
      ])
      expect(await turn(adapter, "c")).toMatchObject([{ text: after }, {}, {}])
      await adapter.forget("web:default")
      expect(await turn(adapter, "d")).toMatchObject([{ text: "turn 1: " }, {}, {}])
    }
  })

  test("is given or refused permission by the policy, and told so with the tool", async () => {
    await using willing = acpOf([], { permissions: "allow" })
    expect(await turn(willing, "permission")).toMatchObject([
      { type: "tool", callId: "c1", toolName: "Run ls", args: { command: "ls" }, status: "pending" },
      { type: "tool", callId: "c1", status: "completed", result: "a.txt" },
      { text: "permission: yes" },
      { reason: "end_turn" },
    ])
    await using strict = acpOf([], { permissions: "deny" })
    expect(await turn(strict, "permission")).toMatchObject([
      { status: "pending" },
      { status: "error", error: "not allowed" },
      { text: "permission: no" },
      { reason: "end_turn" },
    ])
  })

  test("thinks and refuses in our words", async () => {
    await using adapter = acpOf()
    expect((await turn(adapter, "think"))[0]).toMatchObject({ type: "text", part: "reasoning", text: "hm" })
    expect((await turn(adapter, "refuse")).at(-1)).toMatchObject({ reason: "error", cause: "verdict" })
  })

  test("that is none says so when it is started", async () => {
    const signal = new AbortController().signal
    await using none = new Acp({ ...spec, cmd: "/no/such/program" }, {}, "/")
    await expect(none.start(signal)).rejects.toMatchObject({ code: "not_found" })
    // Its end may be seen before its last words are: each time they are heard.
    for (let time = 0; time < 20; time++) {
      await using other = new Acp({ ...spec, cmd: "sh", args: ["-c", "echo what? >&2; exit 4"] }, process.env, "/")
      await expect(other.start(signal)).rejects.toMatchObject({
        code: "unavailable",
        message: expect.stringContaining("what?"),
      })
    }
    await using old = acpOf(["--old"])
    await expect(old.start(signal)).rejects.toThrow("version 0")
  })

  test("what it does not know passes by", () => {
    const words = new AcpWords()
    for (const update of [{ sessionUpdate: "news" }, { sessionUpdate: "plan", entries: [] }])
      expect(words.read(update as never)).toEqual([])
  })
})

const spec = { adapter: "acp", cmd: "", args: [] as string[], env: {}, permissions: "allow" } as const
