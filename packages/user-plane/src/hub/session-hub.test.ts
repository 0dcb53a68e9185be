import { systemClock } from "@warren/base/clock.ts"
import { collected } from "@warren/base/testing/collected.ts"
import { bundleProgram } from "@warren/base/testing/program.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { AgentSpec } from "@warren/protocol/hub/agent-spec.ts"
import { FeedItem } from "@warren/protocol/user-plane/agents.ts"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest"
import type { Message } from "../chat/chats.ts"
import { HostPlaces } from "./testing/host-places.ts"
import { feedUntil, HubSystem, isDone } from "./testing/hub-system.ts"
import type { SessionHub } from "./session-hub.ts"
import type { Item } from "./turn-book.ts"

const scripted = AgentSpec.parse({ adapter: "scripted" })
const written = (...steps: object[]): string => `[[script:${JSON.stringify({ steps })}]]`
let folder: TempFolder
let program: string
let places: HostPlaces
let system: HubSystem
let files = 0

beforeAll(async () => {
  folder = await TempFolder.make()
  program = await bundleProgram(new URL("../../../../apps/supervisor/src/main.ts", import.meta.url), folder)
})
afterAll(() => folder[Symbol.asyncDispose]())
beforeEach(() => {
  places = new HostPlaces(program, folder.path)
  system = new HubSystem(folder.at(`${files++}.db`), places)
})
afterEach(async () => {
  await system[Symbol.asyncDispose]()
  await places[Symbol.asyncDispose]()
})

const say = (hub: SessionHub, text: string, more: object = {}) =>
  hub.prompt({ text, channel: "web:default", mode: "followup", wishes: {}, ...more })
/** All of a chat: an answer holds only so much. */
const allOf = (chatId: string): Message[] => {
  const all: Message[] = []
  for (let hasMore = true; hasMore;) {
    const page = system.chats.messages(chatId, { after: all.at(-1)?.seq ?? 0, limit: 200 })
    all.push(...page.items)
    hasMore = page.hasMore
  }
  return all
}
const textOf = (messageId: string, chatId: string): string => {
  const items = allOf(chatId)
  const said = items.filter((one) => one.promptId === messageId)
  return said.flatMap(({ parts }) => parts.map((part) => (part.type === "text" ? part.text : ""))).join("")
}
const isStatus = (status: string) => (item: Item) => item.type === "agent.status" && item.status === status
/** For a turn that tells more than a feed keeps: whoever reads it falls behind, and looks at what there is. */
const feedUntilLate = async (hub: SessionHub, messageId: string): Promise<void> => {
  while (hub.shown().prompts.some((one) => one.messageId === messageId))
    await new Promise((resolve) => setTimeout(resolve, 5))
}
const isIdle = async (hub: SessionHub): Promise<void> => {
  while (hub.shown().status !== "idle") await new Promise((resolve) => setTimeout(resolve, 5))
}

describe("a turn", () => {
  test("is told as it happens: created, in pieces, with its tools, and finalized once", async () => {
    const hub = await system.start("s1", scripted)
    expect(hub.shown()).toMatchObject({ adapter: "scripted", isConnected: true, status: "idle" })
    const steps = [
      { title: "A try" },
      { text: "Hello there.", pieces: 4, delayMs: 50 },
      { tool: "read", args: { path: "a" }, result: "b" },
    ]
    const { messageId, chatId } = say(hub, written(...steps))
    const items = await feedUntil(hub, isDone(messageId))
    for (const item of items) expect(FeedItem.parse(item)).toEqual(item)
    const kinds = items.map(({ type }) => type).filter((type) => type.startsWith("message"))
    expect(kinds).toEqual([
      ...["message.create", "message.create"],
      ...Array.from({ length: 4 }, () => "message.part.text-delta"),
      ...["message.part.tool-update", "message.part.tool-update", "message.finalize"],
    ])
    const { items: messages } = system.chats.messages(chatId, { limit: 10 })
    expect(messages).toMatchObject([
      { role: "user", state: "final" },
      {
        role: "assistant",
        promptId: messageId,
        reason: "end_turn",
        parts: [
          { type: "text", text: "Hello there." },
          { type: "tool", tool: "read", status: "completed", result: "b" },
        ],
      },
    ])
    expect(system.chats.get(chatId).title).toBe("A try")
    await isIdle(hub)
    expect(places.uses.get("s1")).toBe(0)
  })

  test("is in use while it runs", async () => {
    const hub = await system.start("s1", scripted)
    const { messageId } = say(hub, written({ question: "Well?" }))
    const [asked] = (await feedUntil(hub, ({ type }) => type === "question")).slice(-1)
    expect(places.uses.get("s1")).toBe(1)
    if (asked?.type !== "question") throw new Error("nothing was asked")
    expect(hub.shown().questions).toEqual([asked.question])
    expect(() => hub.answer("nothing", "x")).toThrow(expect.objectContaining({ code: "not_found" }))
    hub.answer(asked.question.id, "fine")
    expect(() => hub.answer(asked.question.id, "again")).toThrow(expect.objectContaining({ code: "not_found" }))
    await feedUntil(hub, isDone(messageId))
    expect(textOf(messageId, asked.question.chatId)).toBe("Answer: fine\n")
  })

  test("waits for the one before it, and the same prompt is one prompt", async () => {
    const hub = await system.start("s1", scripted)
    const first = say(hub, written({ text: "one" }), { messageId: "m1" })
    expect(say(hub, "other", { messageId: "m1" })).toMatchObject({ messageId: "m1", chatId: first.chatId })
    const ids = ["two", "three"].map((text) => say(hub, written({ text })).messageId)
    const items = await feedUntil(hub, isDone(ids[1] ?? ""))
    const finals = items.filter((item) => item.type === "message.finalize").map((item) => item.message.promptId)
    expect(finals).toEqual(["m1", ...ids])
  })

  test("says why it failed", async () => {
    const hub = await system.start("s1", scripted)
    const { messageId, chatId } = say(hub, written({ text: "a" }, { fail: "too many", cause: "rate_limit" }))
    await feedUntil(hub, isDone(messageId))
    expect(system.chats.messages(chatId, { limit: 1 }).items).toMatchObject([
      { reason: "error", cause: "rate_limit", parts: [{ text: "a" }, { type: "error", message: "too many" }] },
    ])
  })

  test("is aborted, and the next one works", async () => {
    const hub = await system.start("s1", scripted)
    const { messageId } = say(hub, written({ text: "a" }, { run: "sleep 1000" }))
    await feedUntil(hub, ({ type }) => type === "message.part.tool-update")
    const waiting = say(hub, written({ text: "never" }))
    expect(hub.abort(true).toSorted()).toEqual([messageId, waiting.messageId].toSorted())
    const items = await feedUntil(hub, isDone(messageId))
    expect(items.findLast((item) => item.type === "message.finalize")).toMatchObject({
      message: { reason: "canceled", cause: "cancelled" },
    })
    const next = say(hub, written({ text: "next" }))
    await feedUntil(hub, isDone(next.messageId))
    expect(textOf(next.messageId, next.chatId)).toBe("next")
  })

  test("gives way to one that steers", async () => {
    const hub = await system.start("s1", scripted)
    const first = say(hub, written({ hang: true }))
    await feedUntil(hub, isStatus("thinking"))
    const later = say(hub, written({ text: "later" }))
    const steering = say(hub, written({ text: "now" }), { mode: "steer" })
    const items = await feedUntil(hub, isDone(later.messageId))
    const finals = items
      .filter((item) => item.type === "message.finalize")
      .map(({ message }) => [message.promptId, message.reason])
    expect(finals).toEqual([
      [first.messageId, "canceled"],
      [steering.messageId, "end_turn"],
      [later.messageId, "end_turn"],
    ])
  })

  test("that is longer than a message goes on in the next, and nothing of it is lost", async () => {
    const hub = await system.start("s1", AgentSpec.parse({ adapter: "command", cmd: "seq", args: ["1"] }))
    const { messageId, chatId } = say(hub, "150000")
    await feedUntilLate(hub, messageId)
    const numbers = Array.from({ length: 150_000 }, (_, index) => `${index + 1}\n`).join("")
    expect(textOf(messageId, chatId) === numbers).toBe(true)
    expect(allOf(chatId).filter(({ state }) => state === "open")).toEqual([])
    expect(allOf(chatId).length).toBeGreaterThan(2)
  })
})

describe("channels", () => {
  test("have conversations of their own, which can begin anew and be taken back", async () => {
    const hub = await system.start("s1", scripted)
    const web = say(hub, "hello")
    const chat = say(hub, written({ text: "b" }), { channel: "telegram:12" })
    await feedUntil(hub, isDone(chat.messageId))
    expect(web.chatId).not.toBe(chat.chatId)
    expect(hub.shown().channels).toEqual([
      { channel: "telegram:12", chatId: chat.chatId },
      { channel: "web:default", chatId: web.chatId },
    ])
    const reverted = hub.revert("web:default", web.messageId)
    expect(reverted).toHaveLength(2)
    expect(system.chats.messages(web.chatId, { limit: 10 }).items.every(({ isReverted }) => isReverted)).toBe(true)
    const renewed = hub.renew("web:default")
    expect(say(hub, written({ text: "c" })).chatId).toBe(renewed)
  })
})

describe("a collected prompt", () => {
  test("waits for more of its kind and is sent with it", async () => {
    const hub = await system.start("s1", AgentSpec.parse({ adapter: "command", cmd: "echo" }))
    const first = say(hub, "this", { mode: "collect" })
    const second = say(hub, "and that", { mode: "collect" })
    const items = await feedUntil(hub, isDone(first.messageId))
    expect(items.filter((item) => item.type === "message.finalize")).toHaveLength(1)
    expect(items.some(isDone(second.messageId))).toBe(true)
    expect(textOf(first.messageId, first.chatId)).toBe("this\n\nand that\n")
  }, 20_000)

  test.each([
    ["a day back", -24 * 3_600_000],
    ["to 1970", -Date.now()],
    ["a day on", 24 * 3_600_000],
  ])(
    "is sent also when the wall clock jumps %s",
    async (_, jumpMs) => {
      let offMs = 0
      let looks = 0
      const now = (): number => (looks++, Date.now() + offMs)
      await using late = new HubSystem(folder.at(`${files++}.db`), places, { ...systemClock, now })
      const hub = await late.start("s1", AgentSpec.parse({ adapter: "command", cmd: "echo" }))
      const { messageId } = say(hub, "this", { mode: "collect" })
      offMs = jumpMs
      // Something else happens, and everything is looked at anew.
      const other = say(hub, "and that")
      await feedUntil(hub, isDone(other.messageId))
      await feedUntil(hub, isDone(messageId))
      // Nobody looks all the time.
      expect(looks).toBeLessThan(1_000)
    },
    20_000,
  )
})

describe("what can go wrong", () => {
  test("a supervisor that dies in the middle: the turn ends with its cause, the next one works", async () => {
    const hub = await system.start("s1", scripted)
    // One that dies before anything of it was heard is tried again; this one has been heard.
    const { messageId, chatId } = say(hub, written({ text: "begun" }, { hang: true }))
    await feedUntil(hub, ({ type }) => type === "message.part.text-delta")
    places.kill("s1")
    await feedUntil(hub, isDone(messageId))
    expect(system.chats.messages(chatId, { limit: 1 }).items).toMatchObject([
      { reason: "lost", cause: "orphaned", state: "final" },
    ])
    const next = say(hub, written({ text: "next" }))
    await feedUntil(hub, isDone(next.messageId))
    expect([textOf(next.messageId, next.chatId), places.launches]).toEqual(["next", 2])
    await isIdle(hub)
  })

  test("a runner that goes in the middle: the next one goes on with the same answer", async () => {
    const hub = await system.start("s1", scripted)
    const { messageId, chatId } = say(hub, written({ text: "0123456789", pieces: 10, delayMs: 20 }))
    await feedUntil(hub, ({ type }) => type === "message.part.text-delta")
    await system.restart()
    const again = system.hub.of("s1")
    await feedUntil(again, isDone(messageId))
    expect(textOf(messageId, chatId)).toBe("0123456789")
    expect(places.launches).toBe(1)
    await isIdle(again)
  })

  test("a supervisor that died while there was no runner: the turn ends with its cause", async () => {
    const hub = await system.start("s1", scripted)
    const { messageId, chatId } = say(hub, written({ text: "a" }, { hang: true }))
    await feedUntil(hub, ({ type }) => type === "message.part.text-delta")
    const restarting = system.restart()
    places.kill("s1")
    await restarting
    await feedUntil(system.hub.of("s1"), isDone(messageId))
    expect(system.chats.messages(chatId, { limit: 1 }).items).toMatchObject([{ reason: "lost", cause: "orphaned" }])
  })

  test("another agent than before replaces it; stopping it ends everything, and the next prompt starts it again", async () => {
    const hub = await system.start("s1", scripted)
    const running = say(hub, written({ hang: true }))
    await feedUntil(hub, isStatus("thinking"))
    await hub.stop()
    expect(hub.shown()).toMatchObject({ prompts: [], isConnected: false })
    expect(textOf(running.messageId, running.chatId)).toBe("")
    await system.start("s1", AgentSpec.parse({ adapter: "command", cmd: "sh", args: ["-c", 'echo "said $1"', "sh"] }))
    const { messageId, chatId } = say(hub, "this")
    await feedUntil(hub, isDone(messageId))
    expect(textOf(messageId, chatId)).toBe("said this\n")
  })

  test("a program that is not there is said so", async () => {
    const hub = await system.start("s1", AgentSpec.parse({ adapter: "command", cmd: "/no/such" }))
    const { messageId, chatId } = say(hub, "hi")
    await feedUntil(hub, isDone(messageId))
    expect(system.chats.messages(chatId, { limit: 1 }).items).toMatchObject([{ reason: "error", cause: "start" }])
  })
})

test("nothing stays of the hub of a session that is gone", async () => {
  const gone = await (async () => new WeakRef(await system.start("s1", scripted)))()
  await system.hub.forget("s1")
  places.kill("s1")
  await collected(gone)
})
