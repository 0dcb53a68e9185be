import { generateKeyPairSync } from "node:crypto"
import { rmSync } from "node:fs"
import { ManualClock } from "@warren/base/clock.ts"
import { silentLog } from "@warren/base/log.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { openStore } from "../store/store.ts"
import { sessionId } from "../testing/test-runner.ts"
import { TestControl } from "../testing/test-control.ts"
import { AuditLog } from "./audit-log.ts"
import { AuditHead } from "./head.ts"

const facts = (n: number) => ({
  ...{ user: `usr_${n}`, via: "tok_1", action: "session.create", subject: "", address: "::1" },
  ...{ request: `req_${n}`, result: "ok" },
})

describe("the audit log of a control plane", () => {
  test("has who did what to what from where with which result, and what was refused", async () => {
    await using system = await TestControl.open()
    const token = await system.token(["sessions:read", "sessions:write"])
    await system.ask("/v1/sessions", { token, body: { name: "canary-name" }, from: "1.2.3.4" })
    await system.ask(`/v1/sessions/${sessionId}/pause`, { method: "POST", token })
    await system.ask(`/v1/sessions/${sessionId}/exec`, { token, body: { cmd: "canary-command" } })
    await system.ask("/v1/sessions/canary-guess", { token })
    await system.ask("/v1/sessions", { token: "wrn_canary-token", body: {} })
    await system.ask("/v1/login/password", { body: { name: "canary-user", password: "canary-password" } })
    await system.ask(`/v1/sessions/${sessionId}`, { token })
    const entries = await system.audit()
    expect(entries.map(({ action, result }) => `${action} ${result}`)).toEqual([
      "token.create ok",
      "session.create ok",
      "session.pause not_found",
      "process.exec forbidden",
      "session.get not_found",
      "session.create unauthenticated",
      "login.password unauthenticated",
    ])
    expect(entries[1]).toMatchObject({
      ...{ user: expect.stringMatching(/^usr_/), via: expect.stringMatching(/^tok_/), address: "1.2.3.4" },
      request: expect.stringMatching(/^req_/),
    })
    expect(entries[2]?.["subject"]).toBe(sessionId)
    expect(JSON.stringify(entries)).not.toContain("canary")
    expect(system.lines.join("")).not.toContain("canary")
    const { body } = await system.ask("/v1/audit/verify", { token: await system.ownerToken() })
    expect(body.isWhole).toBe(true)
  })

  test("is exported as JSON lines", async () => {
    await using system = await TestControl.open()
    await system.person("alice")
    const { body, headers } = await system.ask("/v1/audit/export", { token: await system.ownerToken() })
    expect(headers.get("content-type")).toBe("application/x-ndjson")
    expect(
      body
        .trim()
        .split("\n")
        .map((line: string) => JSON.parse(line).action),
    ).toEqual(["invite.create", "invite.redeem"])
  })

  test("tells its end without what was before it", async () => {
    await using system = await TestControl.open()
    const token = await system.ownerToken()
    for (let n = 0; n < 5; n++) await system.ask("/v1/tokens", { token, body: {} })
    const seqs = async (query: string): Promise<number[]> => {
      const { body } = await system.ask(`/v1/audit?${query}`, { token })
      return body.items.map(({ seq }: { seq: number }) => seq)
    }
    expect(await seqs("before=9007199254740991&limit=2")).toEqual([4, 5])
    expect(await seqs("before=4&limit=2")).toEqual([2, 3])
    expect(await seqs("before=4&after=2")).toEqual([3])
  })

  test("forgets from the front, and says so with a signed checkpoint", async () => {
    await using system = await TestControl.open()
    const token = await system.ownerToken()
    for (let n = 0; n < 5; n++) await system.ask("/v1/tokens", { token, body: {} })
    const cut = await system.ask("/v1/audit/truncate", { token, body: { seq: 3 } })
    expect(cut.body.checkpoint).toMatchObject({ seq: 3, hash: expect.stringMatching(/^[\da-f]{64}$/) })
    const { body } = await system.ask("/v1/audit", { token })
    expect([body.items[0].seq, body.checkpoint.seq]).toEqual([4, 3])
    expect((await system.ask("/v1/audit/verify", { token })).body.isWhole).toBe(true)
    expect((await system.ask("/v1/audit/truncate", { token, body: { seq: 2 } })).status).toBe(404)
  })

  test("a flood of nonsense from one address does not fill it", async () => {
    await using system = await TestControl.open()
    for (let n = 0; n < 200; n++) await system.ask("/v1/account", { token: `wrn_${n}`, from: "6.6.6.6" })
    expect((await system.audit()).length).toBeLessThanOrEqual(11)
    const body = { name: "nobody", password: "x" }
    for (let n = 0; n < 60; n++) await system.ask("/v1/login/password", { body, from: "7.7.7.7" })
    expect((await system.audit()).length).toBeLessThanOrEqual(22)
  })
})

/** A log on a database of its own, which `tamper` can write to like somebody who has only that. */
async function opened(entriesMax = 0) {
  const folder = await TempFolder.make()
  const { privateKey, publicKey } = generateKeyPairSync("ed25519")
  const key = { privateKey, publicKey }
  const clock = new ManualClock()
  const open = async () => {
    const store = await openStore(folder.at("a.db"), "")
    const head = new AuditHead(folder.at("audit.head"), key)
    const log = new AuditLog({ rows: store.audit, key, head, clock, log: silentLog, entriesMax })
    return { store, log }
  }
  const tamper = (sql: string): void => {
    using database = new Database(folder.at("a.db"), { migrations: (schema as { migrations: [] }).migrations })
    database.run(sql)
  }
  return { folder, open, tamper, clock }
}
const schema = await import("../store/schema.ts")

async function filled(count: number) {
  const made = await opened()
  const { store, log } = await made.open()
  for (let n = 1; n <= count; n++) log.add(facts(n))
  await log.written()
  await log[Symbol.asyncDispose]()
  await store[Symbol.asyncDispose]()
  return made
}

async function problemAfter(count: number, sql: string): Promise<string | undefined> {
  const made = await filled(count)
  await using _ = made.folder
  made.tamper(sql)
  const { store, log } = await made.open()
  const { problem } = await log.verify()
  await store[Symbol.asyncDispose]()
  return problem
}

describe("the chain", () => {
  test.each([
    ["an entry is changed", "UPDATE audit SET result = 'forbidden' WHERE seq = 3", /entry 3 is not/],
    ["its number is changed", "UPDATE audit SET seq = 99 WHERE seq = 5", /gone/],
    ["one is removed", "DELETE FROM audit WHERE seq = 2", /between 1 and 3 are gone/],
    ["the first is removed", "DELETE FROM audit WHERE seq = 1", /between 0 and 2 are gone/],
    ["the newest are removed", "DELETE FROM audit WHERE seq >= 4", /after 3 are gone: there were 5/],
    ["all are removed", "DELETE FROM audit", /after 0 are gone/],
    [
      "two change places",
      "UPDATE audit SET user_id = CASE seq WHEN 2 THEN 'usr_3' ELSE 'usr_2' END WHERE seq IN (2, 3)",
      /entry 2/,
    ],
    [
      "a checkpoint is made up",
      `INSERT INTO audit_checkpoints VALUES (2, '${"a".repeat(64)}', 1, '${"A".repeat(86)}')`,
      /checkpoint is not ours/,
    ],
  ])("shows when %s", async (_, sql, problem) => {
    expect(await problemAfter(5, sql)).toMatch(problem)
  })

  test("is whole when nobody touched it, and goes on after a restart", async () => {
    const made = await filled(3)
    await using _ = made.folder
    const { store, log } = await made.open()
    log.add(facts(4))
    expect(await log.verify()).toEqual({ entries: 4, problem: undefined })
    await store[Symbol.asyncDispose]()
  })

  test("any change to any field of any entry shows", async () => {
    const fields = ["time", "user_id", "via", "action", "subject", "address", "request", "result"]
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 6 }), fc.constantFrom(...fields), async (seq, field) => {
        const value = field === "time" ? "time + 1" : `${field} || 'x'`
        expect(await problemAfter(6, `UPDATE audit SET ${field} = ${value} WHERE seq = ${seq}`)).toContain(
          `entry ${seq}`,
        )
      }),
      { numRuns: 20 },
    )
  })

  test("two control planes on one database make one chain", async () => {
    const made = await opened()
    await using _ = made.folder
    const [a, b] = [await made.open(), await made.open()]
    for (let n = 0; n < 40; n++) (n % 2 ? a : b).log.add(facts(n))
    await Promise.all([a.log.written(), b.log.written()])
    expect(await a.log.verify()).toEqual({ entries: 40, problem: undefined })
    await a.store[Symbol.asyncDispose]()
    await b.store[Symbol.asyncDispose]()
  })

  test("keeps as many as it may, and is still whole", async () => {
    const made = await opened(10)
    await using _ = made.folder
    const { store, log } = await made.open()
    for (let n = 0; n < 5; n++) {
      for (let m = 0; m < 8; m++) log.add(facts(m))
      await log.written()
      await made.clock.advance(2_000)
    }
    const { entries, problem } = await log.verify()
    expect([problem, entries <= 19]).toEqual([undefined, true])
    await store[Symbol.asyncDispose]()
  })

  test("a database that is away: nothing more is done that would have to be noted, and what waits comes in the end", async () => {
    const made = await opened()
    await using _ = made.folder
    const { store, log } = await made.open()
    made.tamper("ALTER TABLE audit RENAME TO elsewhere")
    for (let n = 0; n < 10_000; n++) log.add(facts(n))
    expect(() => log.checkRoom()).toThrow("the audit log cannot be written")
    while (made.clock.sleeping === 0) await new Promise(setImmediate)
    // Who waits for it is told so with the next try that fails, and is not left waiting.
    const refused = log.written().catch((failure: unknown) => failure)
    await made.clock.advance(1_000)
    expect(await refused).toMatchObject({ code: "unavailable" })
    while (made.clock.sleeping === 0) await new Promise(setImmediate)
    made.tamper("ALTER TABLE elsewhere RENAME TO audit")
    const written = log.written()
    await made.clock.advance(1_000)
    await written
    log.checkRoom()
    expect(await log.verify()).toEqual({ entries: 10_000, problem: undefined })
    await store[Symbol.asyncDispose]()
    rmSync(made.folder.at("audit.head"), { force: true })
  })
})
