import { ManualClock } from "@warren/base/clock.ts"
import { newId } from "@warren/base/id.ts"
import { silentLog } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { TokenScope } from "@warren/protocol/token-scope.ts"
import { describe, expect, test } from "vitest"
import { hashOf } from "../secret.ts"
import { openSqlite } from "../store/sqlite.ts"
import { storeOn, type Store } from "../store/store.ts"
import { Cookies } from "./cookie.ts"
import { Identity, signInLimits } from "./identity.ts"
import { LastUse } from "./last-use.ts"

const origin = "http://localhost:7777"
const alsoOrigin = "http://warren.localhost:7777"
const ownerSecret = "what is in the file"

type Role = "admin" | "member"

/** A store with people in it, and somebody who finds out who is asking. */
class Hall implements AsyncDisposable {
  readonly clock = new ManualClock()
  readonly store: Store
  readonly lastUse: LastUse
  readonly #scope: Scope

  private constructor(store: Store, scope: Scope) {
    this.store = store
    this.#scope = scope
    this.lastUse = scope.use(new LastUse(store, this.clock, silentLog))
  }

  static async open(): Promise<Hall> {
    const scope = new Scope()
    const folder = scope.use(await TempFolder.make())
    return new Hall(storeOn(scope.use(openSqlite(folder.at("control.db")))), scope)
  }

  /** With the token file of this user, if any. */
  identity(userId?: string): Identity {
    const { store, lastUse, clock } = this
    const tokenFile = userId === undefined ? undefined : { hash: hashOf(ownerSecret), userId }
    const cookies = new Cookies(new URL(origin))
    return new Identity({ store, cookies, origin, alsoOrigin, tokenFile, requestsPerMinute: 600, lastUse, clock })
  }

  async person(name: string, role: Role = "member"): Promise<string> {
    const id = newId("usr")
    await this.store.users.add({ id, name, role, isDisabled: false, createdAt: 1 })
    return id
  }

  async disable(id: string, isDisabled = true, role: Role = "member"): Promise<void> {
    await this.store.users.change(id, { role, isDisabled })
  }

  async token(userId: string, scopes = "exec", expiresAt?: number): Promise<{ id: string; secret: string }> {
    const id = newId("tok")
    const limits = { namePrefix: undefined, sessionsMax: undefined, requestsPerMinute: undefined }
    const times = { createdAt: this.clock.now(), expiresAt, usedAt: undefined }
    await this.store.tokens.add({ id, userId, hash: hashOf(`of-${id}`), label: "", scopes, ...limits, ...times }, 100)
    return { id, secret: `of-${id}` }
  }

  async signIn(userId: string): Promise<{ id: string; secret: string }> {
    const [id, now] = [newId("sin"), this.clock.now()]
    const times = { createdAt: now, usedAt: now, expiresAt: now + signInLimits.lifeMs }
    const row = { id, userId, hash: hashOf(`of-${id}`), method: "password", address: "", ...times } as const
    await this.store.signIns.add(row, signInLimits.perUserMax)
    return { id, secret: `of-${id}` }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#scope.close()
  }
}

const asked = (headers: Readonly<Record<string, string>>, method = "GET"): Request =>
  new Request(`${origin}/v1/account`, { method, headers })
const unauthenticated = { code: "unauthenticated" }

describe("who is asking", () => {
  test("is nobody where nothing is shown", async () => {
    await using hall = await Hall.open()
    const identity = hall.identity()
    for (const headers of [{}, { cookie: "a=1" }, { cookie: "warren-sign-in=" }, { cookie: "other-sign-in=x" }])
      expect(await identity.of(asked(headers))).toBeUndefined()
  })

  test("is told by a token, and by nothing that looks like one", async () => {
    await using hall = await Hall.open()
    const alice = await hall.person("alice")
    const identity = hall.identity()
    const { id, secret } = await hall.token(alice)
    const principal = { via: "token", viaId: id, user: { name: "alice" }, scopes: new Set(["exec"]) }
    expect(await identity.ofToken(secret)).toMatchObject(principal)
    await expect(identity.ofToken(`${secret}x`)).rejects.toMatchObject(unauthenticated)
    await expect(identity.ofToken("x".repeat(500))).rejects.toMatchObject(unauthenticated)
    await expect(identity.ofToken("")).rejects.toMatchObject(unauthenticated)
  })

  test("is read from one header of one form", async () => {
    await using hall = await Hall.open()
    const identity = hall.identity(await hall.person("olga", "admin"))
    const alice = await hall.person("alice")
    const { secret: stored } = await hall.token(alice)
    for (const authorization of [`Bearer ${stored}`, `bEARER ${stored}`])
      expect(await identity.of(asked({ authorization }))).toMatchObject({ user: { name: "alice" } })
    for (const authorization of [stored, `Basic ${stored}`, `Bearer ${stored} x`, `Bearer  ${stored}`, "Bearer", ""])
      await expect(identity.of(asked({ authorization }))).rejects.toMatchObject(unauthenticated)
    // What is wrong with it is not made good by a cookie.
    const { secret } = await hall.signIn(alice)
    const both = asked({ authorization: "Bearer x", cookie: `warren-sign-in=${secret}` })
    await expect(identity.of(both)).rejects.toMatchObject(unauthenticated)
  })

  test("is told by a cookie, until it is taken back", async () => {
    await using hall = await Hall.open()
    const alice = await hall.person("alice")
    const identity = hall.identity()
    const { id, secret } = await hall.signIn(alice)
    const request = asked({ cookie: `warren-sign-in=${secret}` })
    expect(await identity.of(request)).toMatchObject({ via: "sign-in", viaId: id, user: { name: "alice" } })
    await expect(identity.of(asked({ cookie: "warren-sign-in=made-up" }))).rejects.toMatchObject(unauthenticated)
    await hall.store.signIns.revoke(alice, id)
    await expect(identity.of(request)).rejects.toMatchObject(unauthenticated)
  })

  test("is the machine's own user, with what is in the file alone", async () => {
    await using hall = await Hall.open()
    const olga = await hall.person("olga", "admin")
    const identity = hall.identity(olga)
    expect(await identity.ofToken(ownerSecret)).toMatchObject({ via: "token-file", user: { name: "olga" } })
    await expect(identity.ofToken(`${ownerSecret}x`)).rejects.toMatchObject(unauthenticated)
    for (const none of [hall.identity(), hall.identity(newId("usr"))])
      await expect(none.ofToken(ownerSecret)).rejects.toMatchObject(unauthenticated)
    await hall.person("another", "admin")
    await hall.disable(olga, true, "admin")
    await expect(identity.ofToken(ownerSecret)).rejects.toMatchObject(unauthenticated)
  })

  test("is nobody who is disabled, whatever they show", async () => {
    await using hall = await Hall.open()
    const alice = await hall.person("alice")
    const [identity, token, signIn] = [hall.identity(), await hall.token(alice), await hall.signIn(alice)]
    const cookie = asked({ cookie: `warren-sign-in=${signIn.secret}` })
    await hall.disable(alice)
    await expect(identity.ofToken(token.secret)).rejects.toMatchObject(unauthenticated)
    await expect(identity.of(cookie)).rejects.toMatchObject(unauthenticated)
    await hall.disable(alice, false)
    expect([await identity.ofToken(token.secret), await identity.of(cookie)]).toMatchObject([{ via: "token" }, {}])
  })

  test("may what their token says and there is, and rule only while they are an admin", async () => {
    await using hall = await Hall.open()
    const [alice, olga] = [await hall.person("alice"), await hall.person("olga", "admin")]
    await hall.person("another", "admin")
    const identity = hall.identity()
    const { secret } = await hall.token(alice, "exec of:old admin metrics:read")
    expect((await identity.ofToken(secret)).scopes).toEqual(new Set(["exec"]))
    const cookie = asked({ cookie: `warren-sign-in=${(await hall.signIn(olga)).secret}` })
    expect((await identity.of(cookie))?.scopes).toEqual(new Set(TokenScope.options))
    await hall.disable(olga, false, "member")
    const members = TokenScope.options.filter((scope) => scope !== "admin" && scope !== "metrics:read")
    expect((await identity.of(cookie))?.scopes).toEqual(new Set(members))
  })
})

describe("what was shown once", () => {
  test("counts for what goes on until it is taken back", async () => {
    await using hall = await Hall.open()
    const [alice, olga] = [await hall.person("alice"), await hall.person("olga", "admin")]
    const identity = hall.identity(olga)
    const [token, signIn] = [await hall.token(alice), await hall.signIn(alice)]
    const shown = [
      await identity.ofToken(token.secret),
      await identity.of(asked({ cookie: `warren-sign-in=${signIn.secret}` })),
      await identity.ofToken(ownerSecret),
    ].flatMap((one) => one ?? [])
    const still = () => Promise.all(shown.map((one) => identity.isStill(one)))
    expect(await still()).toEqual([true, true, true])
    await hall.store.tokens.revoke(alice, token.id)
    expect(await still()).toEqual([false, true, true])
    await hall.store.signIns.revoke(alice, signIn.id)
    expect(await still()).toEqual([false, false, true])
  })

  test("is found by its id, for whose it is", async () => {
    await using hall = await Hall.open()
    const [alice, olga] = [await hall.person("alice"), await hall.person("olga", "admin")]
    const identity = hall.identity(olga)
    const [token, signIn] = [await hall.token(alice), await hall.signIn(alice)]
    for (const { id } of [token, signIn]) {
      expect(await identity.ofVia(id, alice)).toMatchObject({ viaId: id, user: { id: alice } })
      expect(await identity.ofVia(id, olga)).toBeUndefined()
    }
    expect(await identity.ofVia("token-file", olga)).toMatchObject({ via: "token-file", user: { id: olga } })
    expect(await identity.ofVia("token-file", alice)).toBeUndefined()
    expect(await hall.identity().ofVia("token-file", olga)).toBeUndefined()
    for (const id of [newId("tok"), newId("sin"), "sin_", "tok_", "", "nonsense"])
      expect(await identity.ofVia(id, alice)).toBeUndefined()
    await hall.store.tokens.revoke(alice, token.id)
    await hall.store.signIns.revoke(alice, signIn.id)
    for (const { id } of [token, signIn]) expect(await identity.ofVia(id, alice)).toBeUndefined()
  })
})

test("a token ends when it says, and a sign-in when nobody uses it", async () => {
  await using hall = await Hall.open()
  const alice = await hall.person("alice")
  const identity = hall.identity()
  const [token, signIn] = [await hall.token(alice, "exec", hall.clock.now() + 1_000), await hall.signIn(alice)]
  expect(await identity.ofVia(token.id, alice)).toBeDefined()
  await hall.clock.advance(1_000)
  expect(await identity.ofVia(token.id, alice)).toBeUndefined()
  await hall.clock.advance(signInLimits.idleMs - 1_001)
  expect(await identity.ofVia(signIn.id, alice)).toBeDefined()
  await hall.clock.advance(1)
  expect(await identity.ofVia(signIn.id, alice)).toBeUndefined()
})

describe("what a page has a browser ask with its cookie", () => {
  const site = (value: string, more = {}) => ({ "sec-fetch-site": value, ...more })
  const going = { "sec-fetch-mode": "navigate" }
  const socket = { upgrade: "websocket" }
  test.each([
    ["GET", {}, true],
    ["GET", site("same-origin"), true],
    ["GET", site("none"), true],
    ["HEAD", site("same-site"), false],
    ["GET", site("cross-site"), false],
    ["GET", site("cross-site", going), true],
    ["GET", site("same-site", { "sec-fetch-mode": "cors" }), false],
    ["GET", site("same-site", { origin: alsoOrigin }), true],
    ["OPTIONS", site("cross-site", { origin: "http://evil.example" }), false],
    ["GET", socket, false],
    ["GET", { ...socket, origin }, true],
    ["GET", { ...socket, origin: alsoOrigin }, true],
    ["GET", { ...socket, origin: "http://evil.example" }, false],
    ["GET", { ...socket, ...site("cross-site", going) }, false],
    ["GET", { ...socket, ...site("same-origin") }, true],
    ["POST", {}, false],
    ["POST", { origin }, true],
    ["DELETE", { origin: alsoOrigin }, true],
    ["POST", { origin: "null" }, false],
    ["POST", { origin: `${origin}.evil.example` }, false],
    ["POST", site("same-origin"), true],
    ["POST", site("same-origin", { origin: "http://evil.example" }), false],
    ["POST", site("none"), false],
    ["POST", site("cross-site", going), false],
  ])("%s with %j is answered: %s", async (method, headers, isAnswered) => {
    await using hall = await Hall.open()
    const { secret } = await hall.signIn(await hall.person("alice"))
    const request = asked({ cookie: `warren-sign-in=${secret}`, ...headers }, method)
    const answer = hall.identity().of(request)
    if (isAnswered) expect(await answer).toMatchObject({ user: { name: "alice" } })
    else await expect(answer).rejects.toMatchObject({ code: "forbidden" })
  })
})
