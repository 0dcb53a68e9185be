import { ManualClock } from "@warren/base/clock.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import { bundleProgram, Program } from "@warren/base/testing/program.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { chatCalls, ChatMessage } from "@warren/protocol/user-plane/chat.ts"
import fc from "fast-check"
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest"
import { Chats, mainChatId, type ChatEvent, type Message } from "./chats.ts"
import { fold, type Change, type Part } from "./fold.ts"
import { chatHandlers } from "./handlers.ts"
import { chatMetaMigrations, chatMigrations } from "./schema.ts"

const context = { signal: new AbortController().signal, caller: { name: "anna" } }
let folder: TempFolder
let database: Database
let clock: ManualClock
let chats: Chats
let files = 0

beforeAll(async () => void (folder = await TempFolder.make()))
afterAll(() => folder[Symbol.asyncDispose]())
beforeEach(() => {
  database = new Database(folder.at(`${files++}.db`), { migrations: [...chatMigrations, ...chatMetaMigrations] })
  clock = new ManualClock()
  chats = new Chats(database, clock)
  return () => database.close()
})

const text = (more: string): Change => ({ kind: "text", type: "text", text: more })
const tool = (callId: string, status: "running" | "completed", result?: string): Change => ({
  kind: "part",
  part: { type: "tool", callId, tool: "bash", status, ...(result === undefined ? {} : { result }) },
})
const open = (): Message => chats.append(mainChatId, { role: "assistant", state: "open" })

describe("a chat", () => {
  test("is there from the start: the main one, once", () => {
    const again = new Chats(database, clock)
    expect(again.list(10)).toMatchObject([{ id: mainChatId, kind: "main", lastSeq: 0 }])
    expect(() => again.delete(mainChatId)).toThrow(expect.objectContaining({ code: "invalid" }))
  })

  test("takes messages in order, each as it was said", () => {
    const first = chats.append(mainChatId, { role: "user", parts: [{ type: "text", text: "hi \0 \ud800" }] })
    const second = chats.append(mainChatId, { role: "assistant", parts: [{ type: "text", text: "hello" }] })
    expect([first.seq, second.seq, second.state]).toEqual([1, 2, "final"])
    expect(chats.messages(mainChatId, { limit: 10 })).toEqual({ items: [first, second], hasMore: false })
    expect(first.parts).toEqual([{ type: "text", text: "hi \0 \ud800" }])
    expect(ChatMessage.parse(first)).toEqual(first)
  })

  test("takes the same message once", () => {
    const said = chats.append(mainChatId, { id: "m1", role: "user", parts: [{ type: "text", text: "hi" }] })
    expect(chats.append(mainChatId, { id: "m1", role: "user", parts: [{ type: "text", text: "other" }] })).toEqual(said)
    expect(chats.get(mainChatId).lastSeq).toBe(1)
  })

  test("grows a message by what comes, and lets a tool's news replace what was known of it", () => {
    const { id } = open()
    const changes = [
      text("Let me "),
      text("look."),
      tool("c1", "running"),
      text("Done."),
      tool("c1", "completed", "ok"),
    ]
    for (const change of changes) chats.change(mainChatId, id, change)
    const parts = [
      { type: "text", text: "Let me look." },
      { type: "tool", callId: "c1", tool: "bash", status: "completed", result: "ok" },
      { type: "text", text: "Done." },
    ]
    expect(chats.message(mainChatId, id)).toMatchObject({ parts, state: "open", changedSeq: 6 })
    const final = chats.finalize(mainChatId, id, "end_turn")
    expect(final).toMatchObject({ parts, state: "final", reason: "end_turn", changedSeq: 7 })
    expect(database.get("SELECT count(*) AS n FROM chat_changes", [], (row) => row["n"])).toBe(0)
  })

  test("adds nothing to what is final, and ends once", () => {
    const { id } = open()
    const final = chats.finalize(mainChatId, id, "canceled")
    expect(() => chats.change(mainChatId, id, text("more"))).toThrow(expect.objectContaining({ code: "conflict" }))
    expect(chats.finalize(mainChatId, id, "end_turn")).toEqual(final)
    expect(chats.get(mainChatId).lastSeq).toBe(2)
  })

  test("ends what a restart cut off", () => {
    const { id } = open()
    chats.change(mainChatId, id, text("half"))
    const again = new Chats(database, clock)
    expect(again.finalizeLost()).toBe(1)
    expect(again.finalizeLost()).toBe(0)
    expect(again.message(mainChatId, id)).toMatchObject({ reason: "lost", parts: [{ text: "half" }] })
  })

  test("folds a long answer as it comes, so that little is left to fold", () => {
    const { id } = open()
    for (let n = 0; n < 2_000; n++) chats.change(mainChatId, id, text(`${n} `))
    const left = database.get("SELECT count(*) AS n FROM chat_changes", [], (row) => Number(row["n"]))
    expect(left).toBeLessThan(512)
    const whole = Array.from({ length: 2_000 }, (_, n) => `${n} `).join("")
    expect(chats.message(mainChatId, id).parts).toEqual([{ type: "text", text: whole }])
  })

  test("holds a message to its limit, and counts what a tool replaced only once", () => {
    const { id } = open()
    const large = "x".repeat(150 * 1024)
    for (let n = 0; n < 20; n++) chats.change(mainChatId, id, tool("c1", "running", `${n}${large}`))
    chats.change(mainChatId, id, text(large))
    expect(() => chats.change(mainChatId, id, text(large))).toThrow(expect.objectContaining({ code: "limit" }))
    chats.change(mainChatId, id, text("still fine"))
    expect(chats.finalize(mainChatId, id, "end_turn").parts).toHaveLength(2)
    const parts: Part[] = [{ type: "text", text: "x".repeat(400 * 1024) }]
    expect(() => chats.append(mainChatId, { role: "user", parts })).toThrow(expect.objectContaining({ code: "limit" }))
  })

  test("gives pages forwards, backwards and from the end, none larger than an answer", () => {
    const large = "x".repeat(100 * 1024)
    for (let n = 0; n < 20; n++) chats.append(mainChatId, { role: "user", parts: [{ type: "text", text: large }] })
    const seqs = (range: { after?: number; before?: number; limit: number }) => {
      const { items, hasMore } = chats.messages(mainChatId, range)
      return [items.map(({ seq }) => seq), hasMore]
    }
    expect(seqs({ limit: 3 })).toEqual([[18, 19, 20], true])
    expect(seqs({ before: 18, limit: 3 })).toEqual([[15, 16, 17], true])
    expect(seqs({ before: 3, limit: 3 })).toEqual([[1, 2], false])
    expect(seqs({ after: 0, limit: 2 })).toEqual([[1, 2], true])
    expect(seqs({ after: 18, limit: 2 })).toEqual([[19, 20], false])
    expect(seqs({ after: 20, limit: 2 })).toEqual([[], false])
    expect(seqs({ after: 0, limit: 200 })).toEqual([[1, 2, 3, 4, 5, 6, 7], true])
  })

  test("is found by its session, and takes everything with it when deleted", () => {
    const { id } = chats.create({ title: "Fix it", sessionId: "ses_1" })
    const message = chats.append(id, { role: "assistant", state: "open" })
    chats.change(id, message.id, text("a"))
    chats.rename(id, "Fixed")
    expect(chats.list(10, undefined, "ses_1")).toMatchObject([{ id, title: "Fixed", sessionId: "ses_1" }])
    expect([chats.delete(id), chats.delete(id)]).toEqual([true, false])
    const left = "SELECT (SELECT count(*) FROM chat_messages) + (SELECT count(*) FROM chat_changes) AS n"
    expect(database.get(left, [], (row) => row["n"])).toBe(0)
    for (const ask of [() => chats.get(id), () => chats.append(id, { role: "user" }), () => chats.events(id, 0, 1)])
      expect(ask).toThrow(expect.objectContaining({ code: "not_found" }))
  })
})

describe("what happened", () => {
  const change = fc.oneof(
    fc.record({
      kind: fc.constant("text" as const),
      type: fc.constantFrom("text" as const, "reasoning" as const),
      text: fc.string(),
    }),
    fc
      .tuple(fc.constantFrom("a", "b"), fc.constantFrom("running" as const, "completed" as const))
      .map(([id, state]) => tool(id, state)),
  )

  test("folds to the same in one go and in two", () => {
    fc.assert(
      fc.property(fc.array(change), fc.array(change), (first, second) => {
        expect(fold(fold([], first), second)).toEqual(fold([], [...first, ...second]))
      }),
    )
  })

  /** What a reader knows who applies events to what it has. */
  function apply(known: Map<string, Message>, event: ChatEvent): void {
    if ("message" in event) return void known.set(event.message.id, event.message)
    const message = known.get(event.messageId)
    if (!message) throw new Error("a change to a message that was never told")
    known.set(message.id, { ...message, parts: fold(message.parts, [event.change]) })
  }

  test("gives every reader the same in the end, however often it looked away", () => {
    const step = fc.oneof(
      { arbitrary: fc.record({ do: fc.constant("change" as const), which: fc.nat(5), change }), weight: 8 },
      { arbitrary: fc.constant({ do: "open" as const }), weight: 2 },
      { arbitrary: fc.record({ do: fc.constant("final" as const), which: fc.nat(5) }), weight: 1 },
      { arbitrary: fc.record({ do: fc.constant("read" as const), limit: fc.integer({ min: 1, max: 4 }) }), weight: 3 },
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const { id: chatId } = chats.create()
        const known = new Map<string, Message>()
        const opened: string[] = []
        let after = 0
        const read = (limit: number): number => {
          const events = chats.events(chatId, after, limit)
          for (const event of events) {
            expect(event.seq).toBeGreaterThan(after)
            after = event.seq
            apply(known, event)
          }
          return events.length
        }
        for (const one of steps) {
          if (one.do === "open") opened.push(chats.append(chatId, { role: "assistant", state: "open" }).id)
          if (one.do === "read") read(one.limit)
          const id = "which" in one ? opened[one.which] : undefined
          if (id === undefined) continue
          if (one.do === "final") chats.finalize(chatId, id, "end_turn")
          else if (one.do === "change" && chats.message(chatId, id).state === "open")
            chats.change(chatId, id, one.change)
        }
        while (read(3) > 0);
        const there = chats.messages(chatId, { after: 0, limit: 200 }).items
        const told = [...known.values()].toSorted((a, b) => a.seq - b.seq)
        expect(told.map(({ id, parts, state }) => ({ id, parts, state }))).toEqual(
          there.map(({ id, parts, state }) => ({ id, parts, state })),
        )
      }),
      { numRuns: 150 },
    )
  })

  test("reaches a reader whole who looks now and then at a very long answer", () => {
    const { id } = open()
    const known = new Map<string, Message>()
    let [after, whole] = [0, ""]
    for (let n = 0; n < 1_500; n++) {
      chats.change(mainChatId, id, text(`${n} `))
      whole += `${n} `
      if (n % 190 !== 0) continue
      for (
        let events = chats.events(mainChatId, after, 50);
        events.length > 0;
        events = chats.events(mainChatId, after, 50)
      ) {
        for (const event of events) apply(known, event)
        after = events.at(-1)?.seq ?? after
      }
      expect(known.get(id)?.parts).toEqual([{ type: "text", text: whole }])
    }
  })

  test("is there after each of 30 kills, if it was acknowledged", async () => {
    const program = await bundleProgram(new URL("testing/speaker.ts", import.meta.url), folder)
    const path = folder.at("killed.db")
    for (let kill = 0; kill < 30; kill++) {
      await using speaker = new Program(program, [path])
      const said: string[] = []
      for (let lines = 0; lines < 3 + ((kill * 5) % 17); lines++) said.push(await speaker.line())
      speaker.kill()
      said.push(...(await speaker.rest()))
      using again = new Database(path, { migrations: [...chatMigrations, ...chatMetaMigrations] })
      const kept = new Chats(again, clock)
      check(kept, said)
      kept.finalizeLost()
    }
  })

  function check(kept: Chats, said: readonly string[]): void {
    const last = Number(said.at(-1)?.split(" ")[2])
    const { lastSeq } = kept.get(mainChatId)
    expect(lastSeq === last || lastSeq === last + 1).toBe(true)
    for (const id of new Set(said.map((line) => line.split(" ")[1] ?? ""))) {
      const changes = said.filter((line) => line.startsWith(`change ${id} `)).length
      const { parts, state } = kept.message(mainChatId, id)
      const words = fold(parts, []).map((part) => (part.type === "text" ? part.text : ""))[0] ?? ""
      expect(words.split(",").length - 1).toBeGreaterThanOrEqual(changes)
      if (said.some((line) => line.startsWith(`final ${id} `))) expect([words, state]).toEqual(["0,1,2,3,4,", "final"])
    }
  }
})

describe("the calls", () => {
  test("list chats in pages, the one last spoken in first", async () => {
    const ids: string[] = []
    for (let n = 0; n < 5; n++) {
      await clock.advance(n % 2)
      ids.push(chats.create().id)
    }
    await clock.advance(10)
    chats.append(ids[1] ?? "", { role: "user" })
    const calls = chatHandlers(chats)
    const found: string[] = []
    let cursor: string | undefined
    do {
      const page = await calls["chat.list"]({ limit: 2, ...(cursor === undefined ? {} : { cursor }) }, context)
      expect(chatCalls["chat.list"].out.parse(page)).toEqual(page)
      found.push(...page.items.map(({ id }) => id))
      cursor = page.nextCursor
    } while (cursor !== undefined)
    expect(found).toEqual([ids[1], ids[4], ids[3], ids[2], ids[0], mainChatId])
    await expect(calls["chat.list"]({ limit: 2, cursor: "nonsense" }, context)).rejects.toMatchObject({
      code: "invalid",
    })
  })

  test("read messages, and refuse two directions at once", async () => {
    chats.append(mainChatId, { role: "user" })
    const calls = chatHandlers(chats)
    expect((await calls["chat.messages"]({ id: "main", limit: 5 }, context)).items).toHaveLength(1)
    expect((await calls["chat.get"]({ id: "main" }, context)).lastSeq).toBe(1)
    const ranges = chatCalls["chat.messages"].in
    expect(ranges.safeParse({ id: "main", after: "1", before: "2" }).success).toBe(false)
    expect(ranges.parse({ id: "main", after: "1" })).toMatchObject({ after: 1, limit: 50 })
  })
})
