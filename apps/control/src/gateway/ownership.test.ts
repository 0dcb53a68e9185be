import { ManualClock } from "@warren/base/clock.ts"
import { newId } from "@warren/base/id.ts"
import { silentLog } from "@warren/base/log.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { expect, test } from "vitest"
import { openSqlite } from "../store/sqlite.ts"
import { storeOn, type Store } from "../store/store.ts"
import { Ownership } from "./ownership.ts"

async function withUsers(work: (store: Store, alice: string, bob: string) => Promise<void>): Promise<void> {
  await using folder = await TempFolder.make()
  await using sql = openSqlite(folder.at("control.db"))
  const store = storeOn(sql)
  const [alice, bob] = [newId("usr"), newId("usr")]
  for (const [id, name] of [
    [alice, "alice"],
    [bob, "bob"],
  ] as const)
    await store.users.add({ id, name, role: "admin", isDisabled: false, createdAt: 1 })
  await work(store, alice, bob)
}

const make = (store: Store): Ownership => new Ownership(store, new ManualClock(), silentLog)

test("a session is whose runner first said so, whatever another runner says later, also to the next control plane", () =>
  withUsers(async (store, alice, bob) => {
    const session = newId("ses")
    {
      await using ownership = make(store)
      ownership.learn("session.create", alice, { id: session })
      ownership.learn("session.get", bob, { id: session })
      expect(await ownership.of(session)).toBe(alice)
    }
    await using next = make(store)
    next.learn("session.list", bob, { items: [{ id: session }] })
    next.learn("session.getOrCreate", bob, { session: { id: session }, isNew: true })
    expect(await next.of(session)).toBe(alice)
  }))

test("they are learned from every answer with sessions in it, and from nothing else", () =>
  withUsers(async (store, alice) => {
    await using ownership = make(store)
    const [one, two, three, four] = [newId("ses"), newId("ses"), newId("ses"), newId("ses")]
    ownership.learn("session.list", alice, { items: [{ id: one }, { id: two }] })
    ownership.learn("session.fork", alice, { sessions: [{ id: three }] })
    ownership.learn("file.read", alice, { id: four })
    for (const nonsense of [
      undefined,
      null,
      1,
      "x",
      [],
      { id: 7 },
      { id: "ses_x" },
      { items: 3 },
      { items: [null, 1] },
    ])
      ownership.learn("session.get", alice, nonsense)
    for (const known of [one, two, three]) expect(await ownership.of(known)).toBe(alice)
    expect(await ownership.of(four)).toBeUndefined()
  }))

test("where there is one user only, everything is theirs; a user who goes takes theirs along", () =>
  withUsers(async (store, alice, bob) => {
    await using ownership = make(store)
    const session = newId("ses")
    ownership.learn("session.get", bob, { id: session })
    expect(await ownership.of(newId("ses"))).toBeUndefined()
    await store.users.delete(bob)
    await using next = make(store)
    expect(await next.of(session)).toBe(alice)
  }))
