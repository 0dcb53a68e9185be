import { newId } from "@warren/base/id.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { lackOfPostgres, PostgresServer } from "../testing/postgres-server.ts"
import { openPostgres } from "./postgres.ts"
import type { MadeKey } from "./made.ts"
import { migrations } from "./schema.ts"
import type { Sql } from "./sql.ts"
import { openSqlite } from "./sqlite.ts"
import { storeOn, type Store } from "./store.ts"
import type { TokenRow } from "./tokens.ts"
import type { UserRow } from "./users.ts"

const hash = (seed: string): string => seed.repeat(64).slice(0, 64)
const user = (name: string, role: UserRow["role"] = "member"): UserRow => ({
  ...{ id: newId("usr"), name, role, isDisabled: false, createdAt: 1_000 },
})
const token = (userId: string, seed: string): TokenRow => ({
  ...{ id: newId("tok"), userId, hash: hash(seed), label: "ci", scopes: "exec files:read", createdAt: 5 },
  ...{
    namePrefix: "ci-",
    sessionsMax: 3,
    requestsPerMinute: undefined,
    expiresAt: 9_007_199_254_740_991,
    usedAt: undefined,
  },
})

/** What any database of the control plane has to do. `open` gives the same database each time, new for each test. */
function conformance(make: () => Promise<{ open(): Promise<Sql>; dispose(): Promise<void> }>): void {
  const withStore = async (
    work: (store: Store, sql: Sql, again: () => Promise<Sql>) => Promise<void>,
  ): Promise<void> => {
    const made = await make()
    const sql = await made.open()
    try {
      await work(storeOn(sql), sql, made.open)
    } finally {
      await sql[Symbol.asyncDispose]()
      await made.dispose()
    }
  }

  test("users are kept, found, changed and deleted with all that is theirs", () =>
    withStore(async (store) => {
      const [alice, bob] = [user("alice", "admin"), user("bob")]
      await store.users.add(alice)
      await store.users.add(bob)
      await expect(store.users.add(user("bob"))).rejects.toMatchObject({ code: "conflict" })
      expect(await store.users.byName("alice")).toEqual(alice)
      expect(await store.users.byId(bob.id)).toEqual(bob)
      expect((await store.users.list("", 10)).map(({ name }) => name)).toEqual(["alice", "bob"])
      expect((await store.users.list("alice", 1)).map(({ name }) => name)).toEqual(["bob"])
      await store.users.setPassword(bob.id, "x", 1)
      await store.users.setPassword(bob.id, "y", 2)
      expect(await store.users.passwordOf(bob.id)).toBe("y")
      await store.users.setQuota(bob.id, { sessionsMax: 7 })
      await store.users.setRoute(bob.id, { socket: "/run/b.sock", uid: 1001 })
      expect([await store.users.quotaOf(bob.id), await store.users.routeOf(bob.id)]).toEqual([
        { sessionsMax: 7 },
        { socket: "/run/b.sock", uid: 1001 },
      ])
      await store.tokens.add(token(bob.id, "a"), 5)
      await store.users.delete(bob.id)
      expect([await store.users.count(), await store.tokens.byHash(hash("a"))]).toEqual([1, undefined])
      expect([await store.users.passwordOf(bob.id), await store.users.quotaOf(bob.id)]).toEqual([undefined, {}])
    }))

  test("the only admin stays one, also when two try to end each other at once", () =>
    withStore(async (store) => {
      const [a, b] = [user("a", "admin"), user("b", "admin")]
      await store.users.add(a)
      await store.users.add(b)
      const ends = await Promise.allSettled([
        store.users.change(a.id, { role: "member", isDisabled: false }),
        store.users.change(b.id, { role: "admin", isDisabled: true }),
      ])
      expect(ends.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"])
      const admins = (await store.users.list("", 10)).filter(({ role, isDisabled }) => role === "admin" && !isDisabled)
      expect(admins).toHaveLength(1)
      await expect(store.users.delete(admins[0]?.id ?? "")).rejects.toMatchObject({ code: "conflict" })
    }))

  test("a token is found by its hash with its user and quota; not once it is revoked", () =>
    withStore(async (store) => {
      const alice = user("alice")
      await store.users.add(alice)
      const mine = token(alice.id, "b")
      expect(await store.tokens.add(mine, 1)).toBe(true)
      expect(await store.tokens.add(token(alice.id, "c"), 1)).toBe(false)
      await store.users.setQuota(alice.id, { requestsPerMinute: 9 })
      expect(await store.tokens.byHash(hash("b"))).toEqual({
        token: mine,
        bearer: { user: alice, quota: { requestsPerMinute: 9 } },
      })
      await store.tokens.used(new Map([[mine.id, 77]]))
      expect(await store.tokens.listOf(alice.id)).toEqual([{ ...mine, usedAt: 77 }])
      expect(await store.tokens.revoke("usr_other", mine.id)).toBe(false)
      expect(await store.tokens.revoke(alice.id, mine.id)).toBe(true)
      expect(await store.tokens.byHash(hash("b"))).toBeUndefined()
    }))

  test("sign-ins: the oldest go when there are too many, those that are over go, others end at once", () =>
    withStore(async (store) => {
      const alice = user("alice")
      await store.users.add(alice)
      const at = (time: number, expiresAt = 1_000) => ({
        ...{ id: `sin_${time}`, userId: alice.id, hash: hash(`${time}`), method: "oidc" as const, address: "::1" },
        ...{ createdAt: time, usedAt: time, expiresAt },
      })
      await store.signIns.add(at(1, 3), 3)
      for (const time of [2, 4, 5, 6]) await store.signIns.add(at(time), 3)
      expect((await store.signIns.listOf(alice.id)).map(({ id }) => id)).toEqual(["sin_4", "sin_5", "sin_6"])
      expect((await store.signIns.byHash(hash("5")))?.bearer.user).toEqual(alice)
      await store.signIns.revokeOthers(alice.id, "sin_5")
      expect(await store.signIns.listOf(alice.id)).toEqual([at(5)])
      expect(await store.signIns.revoke(alice.id, "sin_5")).toBe(true)
      expect(await store.signIns.revoke(alice.id, "sin_5")).toBe(false)
    }))

  test("of many who use one invite at once, one becomes a user", () =>
    withStore(async (store) => {
      const invite = { id: newId("inv"), hash: hash("i"), role: "member" as const, name: undefined, createdAt: 1 }
      await store.invites.add({ ...invite, expiresAt: 100, usedAt: undefined })
      const tries = Array.from({ length: 8 }, (_, index) =>
        store.invites.redeem(hash("i"), 50, { user: user(`u${index}`), isNew: true, verifier: "v" }),
      )
      const ends = await Promise.allSettled(tries)
      expect(ends.filter(({ status }) => status === "fulfilled")).toHaveLength(1)
      for (const end of ends) if (end.status === "rejected") expect(end.reason).toMatchObject({ code: "conflict" })
      expect([await store.users.count(), await store.invites.open(50)]).toEqual([1, []])
    }))

  test("an invite that is over, or whose user cannot be made, changes nothing", () =>
    withStore(async (store) => {
      await store.users.add(user("taken"))
      await store.invites.add({
        ...{
          id: newId("inv"),
          hash: hash("j"),
          role: "admin",
          name: "x",
          createdAt: 1,
          expiresAt: 100,
          usedAt: undefined,
        },
      })
      const redeem = (name: string, now: number): Promise<void> =>
        store.invites.redeem(hash("j"), now, { user: user(name), isNew: true, verifier: "v" })
      await expect(redeem("late", 100)).rejects.toMatchObject({ code: "conflict" })
      await expect(redeem("taken", 50)).rejects.toMatchObject({ code: "conflict" })
      expect([await store.users.count(), (await store.invites.open(50)).length]).toEqual([1, 1])
    }))

  test("audit rows have numbers that are taken once; a checkpoint takes the place of those before it", () =>
    withStore(async (store) => {
      const row = (seq: number) => ({
        ...{ seq, time: seq, user: "", via: "", action: "x", subject: "", address: "", request: "", result: "ok" },
        hash: hash(`${seq % 10}`),
      })
      await store.audit.add([row(1), row(2), row(3)])
      await expect(store.audit.add([row(4), row(3)])).rejects.toMatchObject({ code: "conflict" })
      expect((await store.audit.last())?.seq).toBe(3)
      const checkpoint = { seq: 2, hash: hash("2"), time: 9, signature: "s" }
      await store.audit.truncate(checkpoint)
      expect(await store.audit.checkpoint()).toEqual(checkpoint)
      expect(await store.audit.read(0, 10)).toEqual([row(3)])
    }))

  test("no column takes more than a little: nothing of a user's would fit", () =>
    withStore(async (_, sql) => {
      const columns = await columnsOf(sql)
      expect(Object.fromEntries(columns.map(({ name, type }) => [name, type]))).toEqual(allowed)
      for (const { name, type } of columns) {
        if (type !== "text" || name.startsWith("schema_migrations.")) continue
        const [table = "", column = ""] = name.split(".")
        const checks = (await definitionOf(sql, table)).replaceAll(/\s+/g, " ")
        expect(checks, name).toMatch(
          new RegExp(`(length\\(${column}\\)|\\b${column} (IN|= ANY)|\\(${column}\\)::text)`, "i"),
        )
      }
    }))

  test("what is too long is refused by the database itself", () =>
    withStore(async (store) => {
      const long = "x".repeat(600)
      const alice = user("alice")
      await store.users.add(alice)
      const tries = [
        store.users.add({ ...user("x"), name: long }),
        store.users.setPassword(alice.id, long, 1),
        store.users.setRoute(alice.id, { socket: long, uid: 1 }),
        store.tokens.add({ ...token(alice.id, "z"), label: long }, 9),
        store.tokens.add({ ...token(alice.id, "z"), scopes: long }, 9),
        store.audit.add([
          {
            ...{ seq: 1, time: 1, user: "", via: "", action: "x", subject: long, address: "" },
            request: "",
            result: "",
            hash: hash("1"),
          },
        ]),
      ]
      for (const end of await Promise.allSettled(tries)) {
        expect(end).toMatchObject({ status: "rejected", reason: { code: "conflict" } })
      }
    }))

  test("what one control plane was making when it died is made anew by it, and not by another", () =>
    withStore(async (store, sql, again) => {
      const alice = user("alice")
      await store.users.add(alice)
      const [mine, theirs] = ["a", "b"].map((seed) => ({ userId: alice.id, key: hash(seed) })) as [MadeKey, MadeKey]
      const times = { now: 1_000, before: 0 }
      await storeOn(sql, "one").made.claim(mine, hash("1"), times)
      await storeOn(sql, "two").made.claim(theirs, hash("2"), times)
      const other = await again()
      try {
        const { made } = storeOn(other, "one")
        expect(await made.claim(mine, hash("1"), times)).toBe(false)
        await made.forgetUnfinished()
        expect([await made.get(mine), (await made.get(theirs))?.asked]).toEqual([undefined, hash("2")])
        expect(await made.claim(mine, hash("1"), times)).toBe(true)
        await made.keep(mine, "sealed")
        await made.forgetUnfinished()
        expect((await made.get(mine))?.answer).toBe("sealed")
      } finally {
        await other[Symbol.asyncDispose]()
      }
    }))

  test("is still there for the next who opens it", () =>
    withStore(async (store, _, again) => {
      await store.users.add(user("alice"))
      const other = await again()
      try {
        expect((await storeOn(other).users.byName("alice"))?.name).toBe("alice")
      } finally {
        await other[Symbol.asyncDispose]()
      }
    }))
}

/** Every column there may be. One that is added has to be argued for here: what could somebody put into it? */
const allowed: Readonly<Record<string, "text" | "integer">> = {
  ...columns("users", "id name role state", "created_at"),
  ...columns("credentials", "user_id kind subject verifier", "changed_at"),
  ...columns(
    "tokens",
    "id user_id hash label scopes name_prefix",
    "sessions_max requests_per_minute created_at expires_at used_at",
  ),
  ...columns("sign_ins", "id user_id hash method address", "created_at used_at expires_at"),
  ...columns("invites", "id hash role name", "created_at expires_at used_at"),
  ...columns("quotas", "user_id", "sessions_max requests_per_minute"),
  ...columns("routes", "user_id socket", "uid"),
  ...columns("audit", "user_id via action subject address request result hash", "seq time"),
  ...columns("audit_checkpoints", "hash signature", "seq time"),
  ...columns("made", "user_id key asked answer maker", "at"),
  ...columns("session_owners", "session user_id", "seen_at"),
  ...columns("schema_migrations", "name digest", "version applied_at"),
}

function columns(table: string, texts: string, numbers: string): Record<string, "text" | "integer"> {
  const typed = (names: string, type: "text" | "integer") => names.split(" ").map((name) => [`${table}.${name}`, type])
  return Object.fromEntries([...typed(texts, "text"), ...typed(numbers, "integer")])
}

const isSqlite = async (sql: Sql): Promise<boolean> =>
  sql.all("SELECT sqlite_version() AS v", []).then(...([() => true, () => false] as const))

async function columnsOf(sql: Sql): Promise<{ name: string; type: string }[]> {
  const query = (await isSqlite(sql))
    ? `SELECT m.name || '.' || p.name AS name, lower(p.type) AS type FROM sqlite_master m JOIN pragma_table_info(m.name) p
       WHERE m.type = 'table'`
    : `SELECT table_name || '.' || column_name AS name, CASE data_type WHEN 'bigint' THEN 'integer' ELSE data_type END AS type
       FROM information_schema.columns WHERE table_schema = 'public'`
  return (await sql.all(query, [])) as unknown as { name: string; type: string }[]
}

async function definitionOf(sql: Sql, table: string): Promise<string> {
  const query = (await isSqlite(sql))
    ? "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?"
    : `SELECT string_agg(pg_get_constraintdef(oid), ' ') AS sql FROM pg_constraint WHERE conrelid = (?::text)::regclass`
  const [row] = await sql.all(query, [table])
  return String(row?.["sql"])
}

describe("SQLite", () => {
  conformance(async () => {
    const folder = await TempFolder.make()
    return {
      open: () => Promise.resolve(openSqlite(folder.at("control.db"))),
      dispose: () => folder[Symbol.asyncDispose](),
    }
  })
})

describe.skipIf(lackOfPostgres() !== undefined)(`PostgreSQL ${lackOfPostgres() ?? ""}`, () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await PostgresServer.start()
  })
  afterAll(() => server[Symbol.asyncDispose]())

  conformance(async () => {
    const address = await server.database()
    return { open: () => openPostgres(address), dispose: () => Promise.resolve() }
  })

  test("many that start at once make the tables once", async () => {
    const address = await server.database()
    const opened = await Promise.all(Array.from({ length: 4 }, () => openPostgres(address)))
    const [count] = (await opened[0]?.all("SELECT count(*) AS n FROM schema_migrations", [])) ?? []
    expect(count).toEqual({ n: migrations.length })
    await Promise.all(opened.map((sql) => sql[Symbol.asyncDispose]()))
  })

  test("a server that is not there is said so", async () => {
    await expect(openPostgres("postgres://x@localhost/x?host=/nowhere")).rejects.toMatchObject({
      code: "unavailable",
      hint: expect.stringContaining("WARREN_DATABASE"),
    })
  })
})
