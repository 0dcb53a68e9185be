import { generateKeyPairSync } from "node:crypto"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { gatewayLimits } from "./limits.ts"
import { insidePort } from "./testing/gateway-system.ts"
import { TwoSessions } from "./testing/two-sessions.ts"

const system = new TwoSessions()
const { base, expectRefused, rawStatus, socketStatus, status } = system
let mine: string
let other: string
beforeAll(async () => {
  await system.open()
  ;({ mine, other } = system)
})
afterAll(() => system[Symbol.asyncDispose]())

describe("who is not let in", () => {
  const bearers: [what: string, code: number, () => string][] = [
    ["nothing", 401, () => ""],
    ["another session's token", 401, () => system.token(other)],
    ["another user's token", 401, () => system.token(mine, { user: "bob" })],
    ["an expired token", 401, () => system.token(mine, { at: system.clock.now() - 700_000 })],
    ["a token of tomorrow", 401, () => system.token(mine, { at: system.clock.now() + 86_400_000 })],
    [
      "a token somebody else has signed",
      401,
      () => system.token(mine, { key: generateKeyPairSync("ed25519").privateKey }),
    ],
    ["a token for another port", 403, () => system.token(mine, { port: insidePort + 1 })],
    ["a token without its signature", 401, () => system.token(mine).replace(/[^.]*$/, "")],
    [
      "an unsigned token",
      401,
      () => `${Buffer.from('{"alg":"none"}').toString("base64url")}.${system.token(mine).split(".")[1]}.`,
    ],
    ["a link that was never made", 401, () => `lnk_${"x".repeat(43)}`],
    ["a ticket", 401, () => `tkt_${"x".repeat(43)}`],
    ["the token of an app", 401, () => "abc"],
  ]
  test.each(bearers)("by header, by URL, and for a WebSocket: with %s", async (_, code, token) => {
    const headers = { authorization: `Bearer ${token()}` }
    await expectRefused(code, () => status(`${base()}/`, { headers }))
    await expectRefused(code, () => status(`${base()}/?token=${token()}`))
    await expectRefused(code, () => socketStatus(`${base()}/`, { headers }))
    await expectRefused(code, () => status("/", { host: system.ownHost(mine), headers }))
  })

  test("with a token for one port is let in there", async () => {
    expect(await status(`${base()}/`, { headers: system.bearer(mine, insidePort) })).toBe(200)
  })

  test("with another session's or another preview's cookie, or one made up", async () => {
    const theirs = await system.browser(other)
    const otherPort = await system.browser(mine, 4000)
    for (const cookie of [
      theirs.cookie,
      otherPort.cookie,
      "gateway_session=",
      "gateway_session=x",
      "gateway_session",
    ]) {
      await expectRefused(401, () => status("/", { host: system.ownHost(mine), headers: { cookie } }))
      await expectRefused(401, () => status(`${base()}/`, { headers: { cookie } }))
      const headers = { cookie, origin: `http://${system.ownHost(mine)}` }
      await expectRefused(401, () => socketStatus("/", { host: system.ownHost(mine), headers }))
    }
  })

  test("a cookie that somebody puts beside ours takes nothing away", async () => {
    const { host, cookie } = await system.browser(mine)
    const theirs = await system.browser(other)
    const answer = await system.get("/x", {
      host,
      headers: { cookie: `${theirs.cookie}; gateway_session=bad; ${cookie}; mine=1` },
    })
    expect(answer.status).toBe(200)
    expect(answer.body).not.toContain("gateway_session")
    expect(answer.body).toContain("mine=1")
  })

  test("twice with a token that was in a URL, in any way", async () => {
    const token = system.token(mine)
    const host = system.ownHost(mine)
    expect(await status(`/?token=${token}`, { host })).toBe(303)
    await expectRefused(401, () => status(`/?token=${token}`, { host }))
    await expectRefused(401, () => status("/", { host, headers: { authorization: `Bearer ${token}` } }))
    await expectRefused(401, () => status(`${base()}/?token=${token}`))
    await expectRefused(401, () => status("/api/tunnels", { headers: { authorization: `Bearer ${token}` } }))
  })

  test("with two tokens, or two Authorizations", async () => {
    await expectRefused(400, () => status(`${base()}/?token=${system.token(mine)}&token=${system.token(other)}`))
    const line = (): string => `Authorization: Bearer ${system.token(mine)}\r\n`
    await expectRefused(400, () => rawStatus(`GET ${base()}/ HTTP/1.1\r\nHost: localhost\r\n${line()}${line()}\r\n`))
  })

  test("after fifteen minutes without use, however often it was used before; a used cookie is sent again", async () => {
    const { host, cookie } = await system.browser(mine)
    try {
      system.clock.shiftMs += gatewayLimits.cookieIdleMs - 1_000
      const answer = await system.get("/", { host, headers: { cookie } })
      expect(answer.status).toBe(200)
      expect(answer.headers["set-cookie"]?.[0]).toContain(`${cookie}; Path=/; Max-Age=900; HttpOnly; SameSite=Lax`)
      system.clock.shiftMs += gatewayLimits.cookieIdleMs - 1_000
      expect(await status("/", { host, headers: { cookie } })).toBe(200)
      system.clock.shiftMs += gatewayLimits.cookieIdleMs + 1_000
      await expectRefused(401, () => status("/", { host, headers: { cookie } }))
    } finally {
      system.clock.shiftMs = 0
    }
  })

  test("after half a day, however much it is used", async () => {
    const { host, cookie } = await system.browser(mine)
    try {
      for (let ms = 0; ms < gatewayLimits.cookieLifeMs; ms += gatewayLimits.cookieIdleMs - 1_000) {
        expect(await status("/", { host, headers: { cookie } })).toBe(200)
        system.clock.shiftMs = ms
      }
      system.clock.shiftMs = gatewayLimits.cookieLifeMs
      expect(await status("/", { host, headers: { cookie } })).toBe(401)
    } finally {
      system.clock.shiftMs = 0
    }
  })

  test("when the session is gone, with what was good before", async () => {
    const gone = await system.session()
    const { host, cookie } = await system.browser(gone)
    const headers = system.bearer(gone)
    await system.ask.call("session.delete", { id: gone })
    expect(await status("/", { host, headers: { cookie } })).toBe(404)
    expect(await status(`${base(gone)}/`, { headers })).toBe(404)
  })
})
