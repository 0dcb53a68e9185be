import { ManualClock } from "@warren/base/clock.ts"
import { createLog, silentLog } from "@warren/base/log.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import { eventually } from "@warren/base/testing/eventually.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { answerFaults, routes } from "@warren/protocol/http/routes.ts"
import { memoryCalls } from "@warren/protocol/user-plane/memory.ts"
import fc from "fast-check"
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest"
import { memoryMigrations } from "./memories.ts"
import { Memory, memoryHandlers } from "./memory.ts"
import { fuse } from "./ranking.ts"
import { dimensions, EmbeddingsServer } from "./testing/embeddings-server.ts"

const { signal } = new AbortController()
const context = { signal, caller: { name: "anna" } }
const key = "sk-embedding-key"
let folder: TempFolder
let database: Database
let clock: ManualClock
let lines: string[]
let files = 0

beforeAll(async () => void (folder = await TempFolder.make()))
afterAll(() => folder[Symbol.asyncDispose]())
beforeEach(() => {
  database = new Database(folder.at(`${files++}.db`), { migrations: memoryMigrations })
  clock = new ManualClock()
  lines = []
  return () => database.close()
})

const open = (server?: EmbeddingsServer, changes: { model?: string; dimensions?: number } = {}): Memory =>
  new Memory({
    database,
    clock,
    log: createLog((line) => lines.push(line)),
    embeddings: server && { url: server.url, model: "concepts", dimensions, key: () => key, ...changes },
  })
const add = (memory: Memory, text: string, ...tags: string[]): string => memory.add({ text, tags }).id
const search = async (memory: Memory, query: string, more: object = {}) =>
  memoryHandlers(memory)["memory.search"](memoryCalls["memory.search"].in.parse({ query, ...more }), context)
const texts = async (memory: Memory, query: string, more: object = {}) =>
  (await search(memory, query, more)).items.map((hit) => hit.memory.text)

describe("a memory", () => {
  test("is added, read, listed in pages by tag, and forgotten", async () => {
    const memory = open()
    const calls = memoryHandlers(memory)
    const asked = memoryCalls["memory.add"].in.parse({ text: " likes tea ", tags: ["taste", "taste"], source: "chat" })
    const added = await calls["memory.add"](asked, context)
    expect(added).toMatchObject({ text: "likes tea", tags: ["taste"], source: "chat", isEmbedded: false })
    expect(await calls["memory.get"]({ id: added.id }, context)).toEqual(added)
    for (let n = 0; n < 5; n++) add(memory, `note ${n}`, n % 2 === 0 ? "even" : "odd")
    const first = await calls["memory.list"]({ limit: 2, tag: "even" }, context)
    const second = await calls["memory.list"]({ limit: 2, tag: "even", cursor: first.nextCursor }, context)
    expect([...first.items, ...second.items].map(({ text }) => text)).toEqual(["note 4", "note 2", "note 0"])
    expect(second.nextCursor).toBeUndefined()
    expect(memoryCalls["memory.list"].out.parse(first)).toEqual(first)
    expect(await calls["memory.delete"]({ id: added.id }, context)).toEqual({ isDeleted: true })
    expect(await calls["memory.delete"]({ id: added.id }, context)).toEqual({ isDeleted: false })
    await expect(calls["memory.get"]({ id: added.id }, context)).rejects.toMatchObject({ code: "not_found" })
    expect(await texts(memory, "tea")).toEqual([])
    await expect(calls["memory.list"]({ limit: 2, cursor: "x" }, context)).rejects.toMatchObject({ code: "invalid" })
  })

  test("is found by words in any form, the better match first, with the place", async () => {
    const memory = open()
    add(memory, "The deploy runs on Fridays")
    add(memory, `${"word ".repeat(60)} the réunion was running late ${"more ".repeat(60)}`)
    add(memory, "Running and running: a runner runs")
    expect((await texts(memory, "run"))[0]).toMatch(/^Running/)
    const { items, mode, degraded } = await search(memory, "reunion")
    expect([items.length, mode, degraded]).toEqual([1, "text", undefined])
    expect(items[0]?.snippet).toContain("réunion")
    expect(items[0]?.snippet.length).toBeLessThan(200)
    expect(await texts(memory, "nothing-like-it")).toEqual([])
  })

  test("is found by its tags' words, and only those with the tag if one is given", async () => {
    const memory = open()
    add(memory, "one", "project:warren")
    add(memory, "two warren")
    expect(await texts(memory, "warren")).toHaveLength(2)
    expect(await texts(memory, "warren", { tag: "project:warren" })).toEqual(["one"])
  })

  test("takes any text as words, never as syntax", async () => {
    const memory = open()
    add(memory, "plain words here")
    const hostile = [
      '"',
      "a AND",
      "NEAR(a b)",
      "text:words",
      "words*",
      "^words",
      "-words",
      "(",
      "{text}: words",
      "'; DROP TABLE memories",
    ]
    for (const query of hostile) await search(memory, query)
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "grapheme", minLength: 1, maxLength: 40 }), async (query) => {
        if (memoryCalls["memory.search"].in.safeParse({ query }).success) await search(memory, query)
      }),
    )
    expect(await texts(memory, 'words "')).toEqual(["plain words here"])
  })

  test("is reached over HTTP, a search as well as one by its id", async () => {
    const memory = open()
    const app = routes({
      contract: memoryCalls,
      handlers: memoryHandlers(memory),
      log: silentLog,
      caller: () => context.caller,
    })
    answerFaults(app, silentLog)
    const body = JSON.stringify({ text: "tea, please" })
    const added = (await (await app.request("/v1/memories", { method: "POST", body })).json()) as { id: string }
    const found = await (await app.request("/v1/memories/search?query=tea&limit=5")).json()
    expect(found).toMatchObject({ items: [{ memory: { id: added.id } }], mode: "text" })
    expect(await (await app.request(`/v1/memories/${added.id}`)).json()).toEqual(added)
    expect((await app.request("/v1/memories/mem_none")).status).toBe(404)
    expect((await app.request("/v1/memories?limit=0")).status).toBe(400)
  })

  test("holds to the limit", () => {
    const memory = open()
    database.script(
      `WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 20000)
       INSERT INTO memories (id, text, created_at) SELECT 'm' || n, 'x', 0 FROM c`,
    )
    expect(() => add(memory, "one more")).toThrow(expect.objectContaining({ code: "limit" }))
  })
})

describe("with an embedding endpoint", () => {
  let server: EmbeddingsServer
  beforeEach(async () => {
    server = await EmbeddingsServer.start()
    return () => server[Symbol.asyncDispose]()
  })

  test("it is found by meaning, and by both best", async () => {
    await using memory = open(server)
    add(memory, "the kitten sleeps")
    add(memory, "bought an automobile")
    add(memory, "the car is red")
    await memory.settled()
    expect(server.requests.at(-1)).toMatchObject({ authorization: `Bearer ${key}`, model: "concepts" })
    expect(await texts(memory, "vehicle", { mode: "vector", limit: 2 })).toEqual([
      "the car is red",
      "bought an automobile",
    ])
    const both = await search(memory, "car")
    expect(both.mode).toBe("hybrid")
    expect(both.items[0]).toMatchObject({ matched: "both", memory: { text: "the car is red", isEmbedded: true } })
    expect(both.items[1]).toMatchObject({ matched: "vector", memory: { text: "bought an automobile" } })
  })

  test("a search says when it had to do without, and still finds words", async () => {
    await using memory = open(server)
    add(memory, "the car is red")
    await memory.settled()
    for (const mood of ["fails", "nonsense", "short"] as const) {
      server.mood = mood
      const { items, mode, degraded } = await search(memory, "car")
      expect([items.length, mode, degraded?.code]).toEqual([1, "text", "unavailable"])
      expect(degraded?.detail).toMatch(/embedding endpoint/)
    }
    await server[Symbol.asyncDispose]()
    expect((await search(memory, "car", { mode: "vector" })).degraded?.code).toBe("unavailable")
    server = await EmbeddingsServer.start()
  })

  test("a search that is cancelled rejects with the caller's reason", async () => {
    await using memory = open(server)
    server.mood = "hangs"
    const cancel = new AbortController()
    const asked = memory.search({ query: "car", limit: 5 }, cancel.signal)
    await eventually(() => server.requests.length > 0)
    cancel.abort(new DOMException("enough", "AbortError"))
    await expect(asked).rejects.toThrow("enough")
  })

  test("vectors come later when it fails at first", async () => {
    server.mood = "fails"
    await using memory = open(server)
    const id = add(memory, "the car is red")
    await eventually(() => clock.sleeping === 1)
    expect(memory.get(id).isEmbedded).toBe(false)
    await clock.advance(1_000)
    await eventually(() => clock.sleeping === 1)
    server.mood = "works"
    await clock.advance(60_000)
    await memory.settled()
    expect(memory.get(id).isEmbedded).toBe(true)
  })

  test("vectors come after a restart, and anew for another model", async () => {
    {
      await using before = open()
      for (let n = 0; n < 70; n++) add(before, `car ${n}`)
    }
    {
      await using memory = open(server)
      await memory.settled()
      expect(server.requests.map((request) => request.texts.length)).toEqual([32, 32, 6])
      expect(await texts(memory, "vehicle", { mode: "vector" })).toHaveLength(20)
    }
    await using memory = open(server, { model: "other" })
    expect((await search(memory, "vehicle", { mode: "vector" })).degraded).toBeUndefined()
    await memory.settled()
    expect(server.requests.at(-1)?.model).toBe("other")
    expect(await texts(memory, "vehicle", { mode: "vector" })).toHaveLength(20)
  })

  test("one text that it refuses keeps no other waiting, and is not sent for ever", async () => {
    server.refused.add("poison")
    await using memory = open()
    const ids = ["a car", "poison", "a cat", "rain"].map((text) => add(memory, text))
    await using embedding = open(server)
    await embedding.settled()
    expect(ids.map((id) => memory.get(id).isEmbedded)).toEqual([true, false, true, true])
    const before = server.requests.length
    add(embedding, "another car")
    await embedding.settled()
    expect(server.requests.slice(before).map(({ texts }) => texts)).toEqual([["another car"]])
    expect(await texts(memory, "poison", { mode: "text" })).toEqual(["poison"])
  })

  test("what is deleted while its vector is made stays deleted", async () => {
    server.mood = "hangs"
    const memory = open(server)
    const id = add(memory, "the car is red")
    await eventually(() => server.requests.length === 1)
    memory.delete(id)
    await memory[Symbol.asyncDispose]()
    await memory[Symbol.asyncDispose]()
    server.mood = "works"
    await using again = open(server)
    await again.settled()
    expect(database.get("SELECT count(*) AS n FROM memory_vectors", [], (row) => row["n"])).toBe(0)
  })

  test("its key is in no log line and in no answer, even if it repeats it", async () => {
    server.mood = "refuses"
    await using memory = open(server)
    add(memory, "the car is red")
    await memory.settled()
    const answer = JSON.stringify(await search(memory, "car"))
    expect(server.requests.length).toBeGreaterThan(1)
    expect(lines.join("") + answer).not.toContain(key)
  })
})

test("without one, a search by meaning says what is missing", async () => {
  await expect(search(open(), "car", { mode: "vector" })).rejects.toMatchObject({ code: "unsupported" })
})

test.each([
  ["an address", { url: "file:///etc/passwd", model: "m", dimensions: 3 }],
  ["a model", { url: "http://localhost/v1/embeddings", model: "", dimensions: 3 }],
  ["dimensions", { url: "http://localhost/v1/embeddings", model: "m", dimensions: 0 }],
])("refuses a configuration without %s", (_, embeddings) => {
  expect(() => new Memory({ database, clock, log: createLog(() => undefined), embeddings })).toThrow(
    expect.objectContaining({ code: "invalid" }),
  )
})

test("a ranking of two holds each once, and what both found before what one did at the same place", () => {
  const numbers = fc.uniqueArray(fc.nat(30)).map((all) => all.map((n) => ({ n })))
  fc.assert(
    fc.property(numbers, numbers, (words, near) => {
      const ranked = fuse(words, near)
      const all = new Set([...words, ...near].map(({ n }) => n))
      expect(new Set(ranked.map(({ n }) => n))).toEqual(all)
      expect(ranked).toHaveLength(all.size)
      const [first] = words
      if (first && near[0]?.n === first.n) expect(ranked[0]).toMatchObject({ n: first.n, matched: "both" })
    }),
  )
})
