import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { withoutColours } from "../terminal/plain.ts"
import { keysOf } from "./keys.ts"
import { answerOf, harmless } from "./lines.ts"
import { screenOf } from "./screen.ts"
import { Transcript, type Agent, type FeedItem, type Message } from "./transcript.ts"

const painter = { paint: (_: string, text: string) => (text === "" ? "" : `\u001b[1m${text}\u001b[0m`) }
const at = new Date(0).toISOString()
const where = { chatId: "c", messageId: "m" }

function message(more: Partial<Message> = {}): Message {
  return {
    id: "m",
    chatId: "c",
    seq: 1,
    role: "assistant",
    parts: [],
    state: "open",
    createdAt: at,
    changedSeq: 1,
    ...more,
  }
}

const agent: Agent = {
  ...{ session: "s", adapter: "scripted", status: "idle", isConnected: true, models: [], channels: [], prompts: [] },
  ...{ questions: [], feedSeq: 0 },
}

const told: FeedItem[] = [
  { type: "message.create", message: message() },
  { type: "message.part.text-delta", ...where, seq: 2, part: "reasoning", delta: "hm" },
  { type: "message.part.text-delta", ...where, seq: 3, part: "text", delta: "Hel" },
  { type: "message.part.text-delta", ...where, seq: 4, part: "text", delta: "lo" },
  {
    type: "message.part.tool-update",
    ...where,
    seq: 5,
    part: { type: "tool", callId: "1", tool: "bash", status: "running" },
  },
  {
    type: "message.part.tool-update",
    ...where,
    seq: 6,
    part: { type: "tool", callId: "1", tool: "bash", status: "completed" },
  },
  { type: "message.part.text-delta", ...where, seq: 7, part: "text", delta: "!" },
]
const whole = [
  { type: "reasoning", text: "hm" },
  { type: "text", text: "Hello" },
  { type: "tool", callId: "1", tool: "bash", status: "completed" },
  { type: "text", text: "!" },
]

describe("a transcript", () => {
  test("is the same whatever was told twice, and however often it was read anew", () => {
    fc.assert(
      fc.property(fc.nat(told.length), fc.nat(told.length), fc.boolean(), (first, again, isReload) => {
        const transcript = new Transcript()
        for (const item of told.slice(0, first)) transcript.apply(item)
        if (isReload) transcript.load(agent, [message({ parts: whole as Message["parts"], changedSeq: 7 })])
        for (const item of told.slice(Math.min(first, again))) transcript.apply(item)
        expect(transcript.messages.get("m")?.parts).toEqual(whole)
      }),
    )
  })

  test("knows what is open, also when the end of it was heard first", () => {
    const prompt = { messageId: "p", channel: "web:default", chatId: "c", mode: "followup", createdAt: at } as const
    const transcript = new Transcript()
    transcript.apply({ type: "prompt", prompt: { ...prompt, state: "queued" } })
    expect(transcript.isBusy).toBe(true)
    transcript.apply({ type: "prompt", prompt: { ...prompt, state: "done" } })
    transcript.expect("p")
    expect(transcript.isBusy).toBe(false)
    transcript.expect("q")
    expect(transcript.isOpen("q")).toBe(true)
  })

  test("keeps questions until they are closed", () => {
    const transcript = new Transcript()
    const question = { id: "q", chatId: "c", text: "Which?", options: ["a", "b"], askedAt: at }
    transcript.apply({ type: "question", question })
    transcript.apply({ type: "question", question })
    expect(transcript.questions).toEqual([question])
    expect(["2", " 1 ", "3", "other"].map((typed) => answerOf(question, typed))).toEqual(["b", "a", "3", "other"])
    transcript.apply({ type: "question.closed", id: "q" })
    expect(transcript.questions).toEqual([])
  })
})

describe("a screen", () => {
  test("has exactly its lines, none too wide, and steers nothing, whatever is said", () => {
    const text = fc.string({ unit: "grapheme", maxLength: 300 }).filter((one) => /^[ -~\n]*$/.test(one))
    fc.assert(
      fc.property(
        fc.array(fc.tuple(text, fc.constantFrom("user" as const, "assistant" as const)), { maxLength: 5 }),
        fc.integer({ min: 20, max: 120 }),
        fc.integer({ min: 5, max: 50 }),
        fc.nat(100),
        (said, cols, rows, back) => {
          const messages = said.map(([one, role], index) =>
            message({ id: String(index), role, parts: [{ type: "text", text: one }] }),
          )
          const shown = {
            title: "s",
            status: "idle",
            messages,
            questions: [],
            typed: said[0]?.[0].replaceAll("\n", "") ?? "",
            back,
          }
          const lines = screenOf(shown, { cols, rows }, painter)
          expect(lines).toHaveLength(rows)
          for (const line of lines) expect(withoutColours(line).length).toBeLessThanOrEqual(cols)
        },
      ),
    )
  })

  test("what agents write cannot steer the terminal", () => {
    expect(harmless("a\u001b[2Jb\u0007c\r\nd\te\u009b1m")).toBe("a[2Jbc\nd\te1m")
  })

  test("keys are what they mean, and pasted text is text", () => {
    expect(keysOf("héllo wörld\r")).toEqual([{ kind: "text", text: "héllo wörld" }, { kind: "enter" }])
    expect(keysOf("\u001b[5~\u001b[6~\u007f\u0003\u0004\u0015\u001b[F").map(({ kind }) => kind)).toEqual([
      ...["up", "down", "erase", "interrupt", "leave", "clear", "end"],
    ])
    expect(keysOf("\u001b[200~x\u001b\u0001")).toEqual([{ kind: "text", text: "x" }])
    fc.assert(fc.property(fc.string({ unit: "binary" }), (typed) => void keysOf(typed)))
  })
})
