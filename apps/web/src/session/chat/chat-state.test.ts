import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { after, begin, type Agent, type ChatState, type Feed, type Message } from "./chat-state.ts"

const agent: Agent = {
  session: "ses_1",
  adapter: "scripted",
  status: "idle",
  isConnected: true,
  models: [],
  channels: [{ channel: "web:default", chatId: "cht_1" }],
  prompts: [],
  questions: [],
  feedSeq: 1,
}

function message(id: string, more: Partial<Message> = {}): Message {
  const createdAt = "2026-01-01T00:00:00.000Z"
  return { id, chatId: "cht_1", seq: 1, role: "assistant", parts: [], state: "open", createdAt, changedSeq: 1, ...more }
}

function play(items: readonly Feed[], from: ChatState = begin(agent)): ChatState {
  return items.reduce((state, item, index) => after(state, item, index), from)
}

const delta = (seq: number, text: string, part: "text" | "reasoning" = "text"): Feed => {
  return { type: "message.part.text-delta", chatId: "cht_1", messageId: "m1", seq, part, delta: text }
}
const tool = (seq: number, status: "running" | "completed", callId = "c1"): Feed => {
  const part = { type: "tool", callId, tool: "bash", status } as const
  return { type: "message.part.tool-update", chatId: "cht_1", messageId: "m1", seq, part }
}

describe("a conversation", () => {
  test("grows part by part, as the runner writes it down", () => {
    const state = play([
      { type: "message.create", message: message("m1") },
      delta(2, "hm", "reasoning"),
      delta(3, "I "),
      delta(4, "look."),
      tool(5, "running"),
      tool(6, "completed"),
      delta(7, "Done."),
    ])
    expect(state.messages[0]?.parts).toEqual([
      { type: "reasoning", text: "hm" },
      { type: "text", text: "I look." },
      { type: "tool", callId: "c1", tool: "bash", status: "completed" },
      { type: "text", text: "Done." },
    ])
    expect(state.tools.get("c1")).toEqual({ at: 4, tookMs: 1 })
  })

  test("what is told twice counts once, also after everything was read anew", () => {
    const items = [
      { type: "message.create", message: message("m1") } as const,
      delta(2, "a"),
      delta(3, "b"),
      tool(4, "running"),
    ]
    const once = play(items)
    expect(play(items, once).messages).toEqual(once.messages)
    fc.assert(
      fc.property(fc.array(fc.nat(items.length - 1), { maxLength: 20 }), (again) => {
        const told = again.map((index) => items[index]).filter((item) => item !== undefined)
        expect(play(told, once).messages).toEqual(once.messages)
      }),
    )
  })

  test("of another chat is not shown, until somebody begins a new one on the page", () => {
    const prompt = {
      messageId: "m9",
      mode: "followup",
      state: "queued",
      createdAt: "2026-01-01T00:00:00.000Z",
    } as const
    const elsewhere = message("m9", { chatId: "cht_2", role: "user" })
    const other = play([
      { type: "message.create", message: message("m1") },
      { type: "message.create", message: elsewhere },
      { type: "prompt", prompt: { ...prompt, channel: "telegram:1", chatId: "cht_2" } },
    ])
    expect(other.messages.map(({ id }) => id)).toEqual(["m1"])
    const renewed = play([{ type: "prompt", prompt: { ...prompt, channel: "web:default", chatId: "cht_2" } }], other)
    expect([renewed.chatId, renewed.messages.map(({ id }) => id)]).toEqual(["cht_2", ["m9"]])
  })

  test("knows what waits, what is asked and what was taken back", () => {
    const question = { id: "q1", chatId: "cht_1", text: "Which?", askedAt: "2026-01-01T00:00:00.000Z" }
    const asked = play([
      { type: "message.create", message: message("m1") },
      { type: "question", question },
      { type: "question", question },
    ])
    expect(asked.agent.questions).toHaveLength(1)
    const over = play(
      [
        { type: "question.closed", id: "q1" },
        { type: "message.reverted", chatId: "cht_1", messageIds: ["m1"] },
      ],
      asked,
    )
    expect([over.agent.questions, over.messages[0]?.isReverted]).toEqual([[], true])
  })

  test("passes over what it does not know", () => {
    const before = begin(agent)
    expect(after(before, { type: "from.the.future" } as unknown as Feed, 0)).toEqual(before)
  })

  test("leaves the messages that did not change as they were, so that they are not drawn again", () => {
    const first = play([
      { type: "message.create", message: message("m0") },
      { type: "message.create", message: message("m1") },
    ])
    const next = play([delta(2, "more")], first)
    expect(next.messages[0]).toBe(first.messages[0])
    expect(next.messages[1]).not.toBe(first.messages[1])
  })
})
