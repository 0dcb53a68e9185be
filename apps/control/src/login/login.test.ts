import { describe, expect, test } from "vitest"
import { TestControl } from "../testing/test-control.ts"

const login = { method: "POST" } as const

describe("signing in with a password", () => {
  test("gives a cookie that is good for what a token is", async () => {
    await using system = await TestControl.open()
    const alice = await system.person("alice")
    const answer = await system.ask("/v1/login/password", { body: { name: "alice", password: alice.password } })
    expect(answer).toMatchObject({ status: 200, body: { user: { name: "alice", role: "member" } } })
    expect(await system.ask("/v1/account", { cookie: answer.cookie })).toMatchObject({
      status: 200,
      body: { user: { name: "alice" }, via: "sign-in" },
    })
    expect(answer.cookie).not.toBe(alice.cookie)
  })

  test("the cookie is out of reach of scripts and other sites; with TLS no neighbour can plant one", async () => {
    await using plain = await TestControl.open()
    await using secure = await TestControl.open({ publicUrl: new URL("https://warren.example") })
    const set = async (system: TestControl): Promise<string> => {
      const { password } = await system.person("alice")
      const answer = await system.ask("/v1/login/password", { body: { name: "alice", password } })
      return answer.headers.getSetCookie().join("\n")
    }
    expect(await set(plain)).toMatch(/^warren-sign-in=[\w-]{43}; Max-Age=2592000; Path=\/; HttpOnly; SameSite=Lax$/)
    expect(await set(secure)).toMatch(
      /^__Host-warren-sign-in=[\w-]{43}; Max-Age=2592000; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
    )
  })

  test("a cookie that does not count any more keeps nobody from signing in, and is taken back", async () => {
    await using system = await TestControl.open()
    const { cookie, password } = await system.person("alice")
    expect((await system.ask("/v1/login", { cookie })).body.account).toMatchObject({ user: { name: "alice" } })
    await system.ask("/v1/login/out", { ...login, cookie })
    const asked = await system.ask("/v1/login", { cookie })
    expect([asked.status, asked.body]).toEqual([200, { password: true }])
    expect(asked.headers.get("set-cookie")).toMatch(/^warren-sign-in=; Max-Age=0/)
    const again = await system.ask("/v1/login/password", { cookie, body: { name: "alice", password } })
    expect([again.status, again.body.user.name]).toEqual([200, "alice"])
    expect(again.headers.getSetCookie()).toHaveLength(1)
    expect((await system.ask("/v1/account", { cookie: again.cookie })).status).toBe(200)
    expect((await system.ask("/v1/account", { cookie })).status).toBe(401)
  })

  test("a wrong password, an unknown name and a disabled user get the same answer", async () => {
    await using system = await TestControl.open()
    const [alice, bob] = [await system.person("alice"), await system.person("bob")]
    const token = await system.ownerToken()
    await system.ask("/v1/users/bob", { method: "PATCH", token, body: { isDisabled: true } })
    const tries = [
      { name: "alice", password: "not it at all" },
      { name: "nobody", password: alice.password },
      { name: "bob", password: bob.password },
    ]
    const answers = await Promise.all(tries.map((body) => system.ask("/v1/login/password", { body })))
    for (const { status, body, cookie } of answers) {
      expect([status, cookie]).toEqual([401, undefined])
      expect({ ...body.error, requestId: "" }).toEqual({ ...answers[0]?.body.error, requestId: "" })
    }
  })

  test("guessing is slowed down by account and address; the owner, elsewhere, still gets in", async () => {
    await using system = await TestControl.open()
    const { password } = await system.person("alice")
    const guess = (from: string, name = "alice") =>
      system.ask("/v1/login/password", { body: { name, password: "guess guess guess" }, from })
    for (let n = 0; n < 10; n++) expect((await guess("6.6.6.6")).status).toBe(401)
    const slowed = await guess("6.6.6.6")
    expect([slowed.status, slowed.headers.get("retry-after"), slowed.body.error.code]).toEqual([429, "12", "limit"])
    const mine = await system.ask("/v1/login/password", { body: { name: "alice", password }, from: "7.7.7.7" })
    expect(mine.status).toBe(200)
    await system.clock.advance(12_000)
    expect((await guess("6.6.6.6")).status).toBe(401)
    for (let n = 0; n < 30; n++) await guess("6.6.6.6", `user${n}`)
    expect((await guess("6.6.6.6", "another")).status).toBe(429)
  })

  test("only hashes are kept, with a salt and what they cost", async () => {
    await using system = await TestControl.open()
    await system.person("alice")
    const user = await system.control.store.users.byName("alice")
    expect(await system.control.store.users.passwordOf(user?.id ?? "")).toMatch(
      /^scrypt\$32768\$8\$1\$[\w-]{22}\$[\w-]{43}$/,
    )
  })
})

describe("a sign-in", () => {
  test("ends when signed out, at once and for good", async () => {
    await using system = await TestControl.open()
    const { cookie } = await system.person("alice")
    const out = await system.ask("/v1/login/out", { ...login, cookie })
    expect([out.status, out.headers.getSetCookie()[0]]).toEqual([200, expect.stringContaining("Max-Age=0")])
    expect((await system.ask("/v1/account", { cookie })).status).toBe(401)
  })

  test("is listed and can be ended from another; nobody ends another user's", async () => {
    await using system = await TestControl.open()
    const [alice, bob] = [await system.person("alice"), await system.person("bob")]
    await system.clock.advance(1)
    const second = await system.ask("/v1/login/password", { body: { name: "alice", password: alice.password } })
    const { body } = await system.ask("/v1/sign-ins", { cookie: alice.cookie })
    expect(body.items.map((one: { isThis: boolean }) => one.isThis)).toEqual([true, false])
    const path = `/v1/sign-ins/${body.items[1].id}`
    expect((await system.ask(path, { method: "DELETE", cookie: bob.cookie })).status).toBe(404)
    expect((await system.ask("/v1/account", { cookie: second.cookie })).status).toBe(200)
    expect((await system.ask(path, { method: "DELETE", cookie: alice.cookie })).status).toBe(200)
    expect((await system.ask("/v1/account", { cookie: second.cookie })).status).toBe(401)
    expect((await system.ask("/v1/account", { cookie: alice.cookie })).status).toBe(200)
  })

  test("is over after a week unused, and after a month", async () => {
    await using system = await TestControl.open()
    const { cookie } = await system.person("alice")
    const week = 7 * 24 * 3600_000
    const use = async (): Promise<number> => (await system.ask("/v1/account", { cookie })).status
    for (let n = 0; n < 4; n++) {
      await system.clock.advance(week - 60_000)
      expect(await use()).toBe(200)
      await flushed(system)
    }
    await system.clock.advance(week - 60_000)
    expect(await use()).toBe(401)
  })

  test("a new password needs the old one, and ends every other sign-in", async () => {
    await using system = await TestControl.open()
    const alice = await system.person("alice")
    const other = await system.ask("/v1/login/password", { body: { name: "alice", password: alice.password } })
    const set = (body: object) => system.ask("/v1/account/password", { method: "PUT", cookie: alice.cookie, body })
    expect((await set({ password: "a brand new password" })).status).toBe(403)
    expect((await set({ current: "wrong", password: "a brand new password" })).status).toBe(403)
    expect((await set({ current: alice.password, password: "short" })).status).toBe(400)
    expect((await set({ current: alice.password, password: "a brand new password" })).status).toBe(200)
    expect((await system.ask("/v1/account", { cookie: alice.cookie })).status).toBe(200)
    expect((await system.ask("/v1/account", { cookie: other.cookie })).status).toBe(401)
    const again = { name: "alice", password: alice.password }
    expect((await system.ask("/v1/login/password", { body: again })).status).toBe(401)
    expect(
      (await system.ask("/v1/login/password", { body: { ...again, password: "a brand new password" } })).status,
    ).toBe(200)
  })

  test.each([
    ["none", {}],
    ["another site's", { origin: "https://evil.example" }],
    ["null", { origin: "null" }],
    ["one that only begins like ours", { origin: "http://localhost:77777" }],
    ["ours with another scheme", { origin: "https://localhost:7777" }],
    ["none, from another site", { "sec-fetch-site": "cross-site" }],
    ["none, from a neighbour", { "sec-fetch-site": "same-site" }],
  ])("what changes something has to come from our own page: origin %s", async (_, headers) => {
    await using system = await TestControl.open()
    const { cookie } = await system.person("alice")
    const forged = await system.ask("/v1/tokens", {
      body: {},
      headers: { cookie, ...headers },
    })
    expect(forged.status).toBe(403)
    expect((await system.ask("/v1/tokens", { cookie })).body.items).toEqual([])
  })

  test("our own page may, with an origin or with the browser's word for it", async () => {
    await using system = await TestControl.open()
    const { cookie } = await system.person("alice")
    expect((await system.ask("/v1/tokens", { cookie, body: {} })).status).toBe(201)
    const headers = { cookie, "sec-fetch-site": "same-origin" }
    expect((await system.ask("/v1/tokens", { body: {}, headers })).status).toBe(201)
  })

  test("a WebSocket with a cookie needs our origin, too", async () => {
    await using system = await TestControl.open()
    const { cookie } = await system.person("alice")
    const headers = { cookie, upgrade: "websocket", connection: "upgrade" }
    expect((await system.ask("/v1/sessions/x/exec", { headers })).status).toBe(403)
  })

  test("a cookie is no token, and a token no cookie, also when they were just used as what they are", async () => {
    await using system = await TestControl.open()
    const { cookie } = await system.person("alice")
    const token = await system.token(["account:read"])
    expect((await system.ask("/v1/account", { cookie })).status).toBe(200)
    expect((await system.ask("/v1/account", { token })).status).toBe(200)
    expect((await system.ask("/v1/account", { token: cookie.split("=")[1] })).status).toBe(401)
    expect((await system.ask("/v1/account", { cookie: `warren-sign-in=${token}` })).status).toBe(401)
  })

  test("a cookie sent twice is nobody's", async () => {
    await using system = await TestControl.open()
    const { cookie } = await system.person("alice")
    expect((await system.ask("/v1/account", { cookie: `warren-sign-in=planted; ${cookie}` })).status).toBe(400)
  })
})

/** When it was last used is written now and then; here it is written now. */
async function flushed(system: TestControl): Promise<void> {
  const [row] = await system.control.store.signIns.listOf((await system.control.store.users.byName("alice"))?.id ?? "")
  await system.control.store.signIns.used(new Map([[row?.id ?? "", system.clock.now()]]))
}

describe("the first link", () => {
  test("lets one person in as the first admin, once", async () => {
    await using system = await TestControl.open()
    const { firstLink } = await import("../owner.ts")
    const link = await firstLink(system.control.store, system.control.invites, "olga")
    const code = link?.split("#")[1] ?? ""
    expect(link).toMatch(/^http:\/\/localhost:7777\/join#[\w-]{43}$/)
    const body = { code, password: "something long enough" }
    const tries = await Promise.all(Array.from({ length: 5 }, () => system.ask("/v1/invites/redeem", { body })))
    expect(tries.filter(({ status }) => status === 401)).toHaveLength(4)
    const cookie = tries.find(({ status }) => status === 200)?.cookie
    expect((await system.ask("/v1/account", { cookie })).body.user).toMatchObject({ name: "olga", role: "admin" })
    expect(await firstLink(system.control.store, system.control.invites, "olga")).toBeUndefined()
  })

  test("is over after a quarter of an hour", async () => {
    await using system = await TestControl.open()
    const { firstLink } = await import("../owner.ts")
    const code = (await firstLink(system.control.store, system.control.invites, "olga"))?.split("#")[1]
    await system.clock.advance(15 * 60_000)
    expect((await system.ask("/v1/invites/redeem", { body: { code } })).status).toBe(401)
  })

  test("leads to a page that holds nothing but itself", async () => {
    await using system = await TestControl.open()
    const page = await system.ask("/join")
    expect(page.headers.get("content-security-policy")).toMatch(/default-src 'none'.*frame-ancestors 'none'/)
    expect(page.headers.get("referrer-policy")).toBe("no-referrer")
    expect(page.body).toContain("/v1/invites/redeem")
  })

  test("one that never was, was taken back or is for somebody else gets the same answer", async () => {
    await using system = await TestControl.open()
    const token = await system.ownerToken()
    const made = await system.ask("/v1/invites", { token, body: { name: "carol" } })
    const taken = await system.ask("/v1/invites", { token, body: {} })
    await system.ask(`/v1/invites/${taken.body.invite.id}`, { method: "DELETE", token })
    const tries = [
      { code: "nonsense" },
      { code: taken.body.code, name: "dave" },
      { code: made.body.code, name: "dave" },
    ]
    for (const body of tries) expect((await system.ask("/v1/invites/redeem", { body })).status).toBe(401)
    expect((await system.ask("/v1/invites", { token })).body.items).toHaveLength(1)
  })
})
