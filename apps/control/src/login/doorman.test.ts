import { ManualClock } from "@warren/base/clock.ts"
import { newId } from "@warren/base/id.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { expect, test } from "vitest"
import { Buckets } from "../buckets.ts"
import { openSqlite } from "../store/sqlite.ts"
import { storeOn, type Store } from "../store/store.ts"
import { Visit } from "../visit.ts"
import { Cookies } from "./cookie.ts"
import { Doorman, loginLimits } from "./doorman.ts"

const password = "the password of alice"
const wrong = { code: "unauthenticated", message: "the name or the password is wrong" }

/** A doorman for whom a password is its own verifier: what real ones cost is not what is looked at here. */
async function withDoorman(work: (doorman: Doorman, store: Store, clock: ManualClock) => Promise<void>): Promise<void> {
  await using folder = await TempFolder.make()
  await using sql = openSqlite(folder.at("control.db"))
  const [store, clock] = [storeOn(sql), new ManualClock()]
  const passwords = { isRight: async (given: string, verifier?: string) => given === verifier }
  const cookies = new Cookies(new URL("http://localhost:7777"))
  const alice = { id: newId("usr"), name: "alice", role: "member", isDisabled: false, createdAt: 1 } as const
  await store.users.add(alice)
  await store.users.setPassword(alice.id, password, 1)
  await work(new Doorman({ store, cookies, passwords, buckets: new Buckets(clock), clock }), store, clock)
}

test("who has the name and the password is let in, and nobody else", () =>
  withDoorman(async (doorman, store) => {
    const visit = new Visit("10.0.0.1")
    const alice = await doorman.check(visit, "alice", password)
    expect(alice.name).toBe("alice")
    await expect(doorman.check(visit, "alice", "a guess")).rejects.toMatchObject(wrong)
    await expect(doorman.check(visit, "nobody", password)).rejects.toMatchObject(wrong)
    await store.users.change(alice.id, { role: "member", isDisabled: true })
    await expect(doorman.check(visit, "alice", password)).rejects.toMatchObject(wrong)
  }))

test("who is disabled meanwhile gets no cookie", () =>
  withDoorman(async (doorman, store) => {
    const visit = new Visit("10.0.0.1")
    const alice = await doorman.check(visit, "alice", password)
    await expect(doorman.signIn(visit, { ...alice, isDisabled: true }, "oidc")).rejects.toMatchObject(wrong)
    expect([visit.headers, await store.signIns.listOf(alice.id)]).toEqual([[], []])
    await doorman.signIn(visit, alice, "password")
    expect(visit.headers).toEqual([["set-cookie", expect.stringMatching(/^warren-sign-in=[\w-]{43}; /)]])
    expect(await store.signIns.listOf(alice.id)).toMatchObject([{ method: "password", address: "10.0.0.1" }])
  }))

test("guesses at one account from one address are slowed down, and others are not", () =>
  withDoorman(async (doorman, _, clock) => {
    const guess = (from: string, name = "alice", visit = new Visit(from)) => doorman.check(visit, name, "a guess")
    for (let n = 0; n < loginLimits.perAccount.burst; n++) await expect(guess("6.6.6.6")).rejects.toMatchObject(wrong)
    const visit = new Visit("6.6.6.6")
    await expect(guess("", "alice", visit)).rejects.toMatchObject({ code: "limit" })
    expect(visit.headers).toEqual([["retry-after", "12"]])
    expect((await doorman.check(new Visit("7.7.7.7"), "alice", password)).name).toBe("alice")
    await clock.advance(12_000)
    await expect(guess("6.6.6.6")).rejects.toMatchObject(wrong)
    await expect(guess("6.6.6.6")).rejects.toMatchObject({ code: "limit" })
  }))

test("guesses at many accounts from one address are slowed down, too", () =>
  withDoorman(async (doorman) => {
    const guess = (n: number) => doorman.check(new Visit("6.6.6.6"), `user${n}`, "a guess")
    for (let n = 0; n < loginLimits.perAddress.burst; n++) await expect(guess(n)).rejects.toMatchObject(wrong)
    await expect(guess(-1)).rejects.toMatchObject({ code: "limit" })
  }))
