import { readFile } from "node:fs/promises"
import { describe, expect, test } from "vitest"
import { sessionId } from "../testing/test-runner.ts"
import { TestControl } from "../testing/test-control.ts"

describe("a token", () => {
  test("is told once and kept as a hash", async () => {
    await using system = await TestControl.open()
    const owner = await system.ownerToken()
    const made = await system.ask("/v1/tokens", { token: owner, body: { label: "ci", scopes: ["exec"] } })
    expect(made.body.token).toMatch(/^wrn_[\w-]{43}$/)
    expect(made.body.about).toMatchObject({ label: "ci", scopes: ["exec"], limits: {} })
    const listed = await system.ask("/v1/tokens", { token: owner })
    expect(JSON.stringify(listed.body)).not.toContain(made.body.token)
    for (const name of await system.folder.names()) {
      if (name.startsWith("control.db")) {
        expect((await readFile(system.folder.at(name))).includes(made.body.token.slice(4))).toBe(false)
      }
    }
  })

  test("does what its scopes say and nothing else", async () => {
    await using system = await TestControl.open()
    const token = await system.token(["sessions:read"])
    expect((await system.ask(`/v1/sessions/${sessionId}`, { token })).status).toBe(200)
    const refused = await system.ask("/v1/sessions", { token, body: {} })
    expect([refused.status, refused.body.error]).toEqual([403, expect.objectContaining({ code: "forbidden" })])
    expect((await system.ask("/v1/tokens", { token, body: {} })).status).toBe(403)
    expect((await system.ask("/v1/users", { token })).status).toBe(403)
  })

  test("may everything but rule over accounts unless its maker says so", async () => {
    await using system = await TestControl.open()
    const { body } = await system.ask("/v1/tokens", { token: await system.ownerToken(), body: {} })
    expect(body.about.scopes).toContain("exec")
    for (const scope of ["admin", "account:write", "metrics:read"]) expect(body.about.scopes).not.toContain(scope)
  })

  test("that sees only some sessions has nothing of its owner's besides, unless its maker says so", async () => {
    await using system = await TestControl.open()
    const bound = { limits: { namePrefix: "ci-" } }
    const { body } = await system.ask("/v1/tokens", { token: await system.ownerToken(), body: bound })
    expect(body.about.scopes).toEqual(expect.arrayContaining(["sessions:write", "exec", "files:read", "ports"]))
    const others = /^(workspaces|secrets|memories|database|access|account):|^(images|runner):write$|^admin$|^metrics/
    expect(body.about.scopes.filter((scope: string) => others.test(scope))).toEqual(["account:read"])
    const wide = await system.token(["sessions:write", "workspaces:write", "secrets:read"], bound)
    const unbound = await system.token(["sessions:write"])
    const borrowing = [
      { workspace: "notes" },
      { secrets: ["GITHUB_TOKEN"] },
      { keys: [{ scope: "llm:openai" }] },
      { workspace: "notes", secrets: ["GITHUB_TOKEN"] },
    ]
    for (const wishes of borrowing) {
      const refused = await system.ask("/v1/sessions", { token: body.token, body: wishes })
      expect([refused.status, refused.body.error.message]).toEqual([
        403,
        expect.stringMatching(/scope (workspaces:write|secrets:read)/),
      ])
      const byKey = await system.ask("/v1/sessions/by-key/a", { method: "PUT", token: body.token, body: wishes })
      expect(byKey.status).toBe(403)
      // Who was trusted with them by name, or with all sessions, gets as far as the runner.
      for (const token of [wide, unbound]) {
        expect((await system.ask("/v1/sessions", { token, body: wishes })).status).not.toBe(403)
      }
    }
    const keys = { keys: [{ scope: "llm:openai" }] }
    const changed = await system.ask(`/v1/sessions/${sessionId}`, { method: "PATCH", token: body.token, body: keys })
    expect(changed.status).toBe(403)
    expect(system.runner.statements.every(({ token }) => token !== body.about.id)).toBe(true)
    // What is empty borrows nothing.
    const nothing = { secrets: [], keys: [] }
    expect((await system.ask("/v1/sessions", { token: body.token, body: nothing })).status).not.toBe(403)
  })

  test("never gives more than its maker has", async () => {
    await using system = await TestControl.open()
    const maker = await system.token(["account:write", "exec"], { limits: { namePrefix: "ci-", sessionsMax: 2 } })
    const wider = await system.ask("/v1/tokens", { token: maker, body: { scopes: ["exec", "files:read"] } })
    expect(wider.status).toBe(403)
    expect((await system.ask("/v1/tokens", { token: maker, body: { limits: { namePrefix: "x-" } } })).status).toBe(403)
    const child = await system.ask("/v1/tokens", {
      token: maker,
      body: { scopes: ["exec"], limits: { sessionsMax: 9 } },
    })
    expect(child.body.about.limits).toEqual({ namePrefix: "ci-", sessionsMax: 2 })
    const narrower = await system.ask("/v1/tokens", {
      token: maker,
      body: { scopes: ["exec"], limits: { namePrefix: "ci-a" } },
    })
    expect(narrower.body.about.limits.namePrefix).toBe("ci-a")
  })

  test("an admin's scope is worth nothing to somebody who is none, or is none any more", async () => {
    await using system = await TestControl.open()
    const bob = await system.person("bob", "admin")
    const made = await system.ask("/v1/tokens", { cookie: bob.cookie, body: { scopes: ["admin"] } })
    const token = made.body.token
    expect((await system.ask("/v1/users", { token })).status).toBe(200)
    await system.ask("/v1/users/bob", { method: "PATCH", token: await system.ownerToken(), body: { role: "member" } })
    expect((await system.ask("/v1/users", { token })).status).toBe(403)
    expect((await system.ask("/v1/tokens", { cookie: bob.cookie, body: { scopes: ["admin"] } })).status).toBe(403)
  })

  test("ends at once when revoked, when it expires, when its user is disabled or deleted", async () => {
    await using system = await TestControl.open()
    const owner = await system.ownerToken()
    const bob = await system.person("bob")
    const make = async (body: object) => (await system.ask("/v1/tokens", { cookie: bob.cookie, body })).body
    const status = async (token: string) => (await system.ask("/v1/account", { token })).status
    const [one, two, three] = [await make({}), await make({ lifeMs: 60_000 }), await make({})]
    for (const { token } of [one, two, three]) expect(await status(token)).toBe(200)
    expect((await system.ask(`/v1/tokens/${one.about.id}`, { method: "DELETE", token: owner })).status).toBe(404)
    await system.ask(`/v1/tokens/${one.about.id}`, { method: "DELETE", cookie: bob.cookie })
    expect(await status(one.token)).toBe(401)
    await system.clock.advance(59_999)
    expect(await status(two.token)).toBe(200)
    await system.clock.advance(1)
    expect(await status(two.token)).toBe(401)
    await system.ask("/v1/users/bob", { method: "PATCH", token: owner, body: { isDisabled: true } })
    expect(await status(three.token)).toBe(401)
    await system.ask("/v1/users/bob", { method: "PATCH", token: owner, body: { isDisabled: false } })
    expect(await status(three.token)).toBe(200)
    await system.ask("/v1/users/bob", { method: "DELETE", token: owner })
    expect([await status(three.token), (await system.ask("/v1/account", { cookie: bob.cookie })).status]).toEqual([
      401, 401,
    ])
  })

  test("revoked, what it had opened is cut", async () => {
    await using system = await TestControl.open()
    const owner = await system.ownerToken()
    const token = await system.token(["sessions:read"])
    const [about] = (await system.ask("/v1/tokens", { token: owner })).body.items
    const stop = new AbortController()
    const response = await system.open("/v1/sessions/events", token, stop.signal)
    const reader = response.body?.getReader()
    const decoder = new TextDecoder()
    expect(decoder.decode((await reader?.read())?.value)).toContain('"created"')
    await system.ask(`/v1/tokens/${about.id}`, { method: "DELETE", token: owner })
    let rest = ""
    for (let read = await reader?.read(); read && !read.done; read = await reader?.read())
      rest += decoder.decode(read.value)
    expect(rest).toContain('"code":"unauthenticated"')
  })

  test.each([
    ["nothing", ""],
    ["no scheme", "wrn_x"],
    ["another scheme", "Basic d3JuOng="],
    ["two", "Bearer a b"],
    ["nonsense", "Bearer \u00ff\u00fe"],
    ["a long one", `Bearer ${"x".repeat(5_000)}`],
    ["SQL", "Bearer ' OR 1=1 --"],
  ])("what is none is refused: %s", async (_, authorization) => {
    await using system = await TestControl.open()
    expect((await system.ask("/v1/account", { headers: { authorization } })).status).toBe(401)
  })

  test("can look as clients of E2B insist on", async () => {
    await using system = await TestControl.open()
    const token = await system.token(["account:read"], { form: "e2b" })
    expect(token).toMatch(/^e2b_[0-9a-f]{64}$/)
    expect((await system.ask("/v1/account", { token })).status).toBe(200)
  })

  test("when it was last used is known, to the minute", async () => {
    await using system = await TestControl.open()
    const token = await system.token(["account:read"])
    await system.ask("/v1/account", { token })
    const used = async () => (await system.ask("/v1/tokens", { token })).body.items[0].usedAt
    expect(await used()).toBeUndefined()
    await system.control.lastUse.write()
    expect(Date.parse(await used())).toBe(system.clock.now())
  })

  test("the runner is told by a signed statement for whom, what and within which limits", async () => {
    await using system = await TestControl.open()
    await system.ask("/v1/users/olga/quota", {
      method: "PUT",
      token: await system.ownerToken(),
      body: { sessionsMax: 5 },
    })
    const token = await system.token(["sessions:read"], { limits: { namePrefix: "ci-", sessionsMax: 1 } })
    await system.ask(`/v1/sessions/${sessionId}`, { token })
    expect(system.runner.statements.at(-1)).toMatchObject({
      ...{ user: "olga", call: "session.get", session: sessionId, scope: "sessions:read" },
      limits: { sessionsMax: 5, namePrefix: "ci-", prefixSessionsMax: 1 },
      token: expect.stringMatching(/^tok_/),
    })
  })

  test("a user without a runner is told so; nobody gets another's", async () => {
    await using system = await TestControl.open()
    const bob = await system.person("bob")
    const answer = await system.ask(`/v1/sessions/${sessionId}`, { cookie: bob.cookie })
    expect([answer.status, answer.body.error.code]).toEqual([503, "unavailable"])
    const owner = await system.ownerToken()
    // An admin who looks has got what there is: nothing is broken, there is none.
    const none = await system.ask("/v1/users/bob/route", { token: owner })
    expect([none.status, none.body.error.message]).toEqual([404, "bob has no runner on this machine"])
    const route = { socket: system.folder.at("olga.sock"), uid: process.getuid?.() }
    await system.ask("/v1/users/bob/route", { method: "PUT", token: owner, body: route })
    await system.clock.advance(10_000)
    const misled = await system.ask(`/v1/sessions/${sessionId}`, { cookie: bob.cookie })
    expect([misled.status, misled.body.error.message]).toEqual([403, "the statement is for another user"])
    await system.ask("/v1/users/bob/route", { method: "PUT", token: owner, body: { ...route, uid: 12_345 } })
    await system.clock.advance(10_000)
    const squatted = await system.ask(`/v1/sessions/${sessionId}`, { cookie: bob.cookie })
    expect([squatted.status, squatted.body.error.message]).toEqual([503, "your runner's socket is not your runner's"])
  })
})
