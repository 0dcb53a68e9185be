import { generateKeyPairSync } from "node:crypto"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { closeServer } from "@warren/base/unix-socket.ts"
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest"
import { gatewayLimits } from "./limits.ts"
import { GatewaySystem, insidePort } from "./testing/gateway-system.ts"
import type { Ask } from "./testing/http-door.ts"

const system = new GatewaySystem()
let mine: string
let other: string
beforeAll(async () => {
  await system.open()
  mine = await system.session({ name: "mine" })
  other = await system.session({ name: "other" })
})
afterAll(() => system[Symbol.asyncDispose]())

const base = (session = mine): string => `/s/${session}/t/${insidePort}`
/** Refused, noted, and unknown to whatever runs inside. */
async function expectRefused(status: number, work: () => Promise<number>): Promise<void> {
  const before = await requestsSeen()
  const notes = system.notes.length
  expect(await work()).toBe(status)
  expect(system.notes.slice(notes).filter(({ call }) => call === "gateway.request")).toHaveLength(1)
  // One more for each session: the question itself.
  expect(await requestsSeen()).toBe(before + 2)
}
async function requestsSeen(): Promise<number> {
  const seen = await Promise.all([system.seen(mine), system.seen(other)])
  return seen.reduce((sum, { requests = 0, upgrades = 0 }) => sum + requests + upgrades, 0)
}
const status = async (path: string, asked?: Ask): Promise<number> => (await system.get(path, asked)).status
const socketStatus = async (path: string, asked?: Ask): Promise<number> => {
  const { head, socket } = await system.upgrade(path, asked)
  socket.destroy()
  return Number(head.split(" ")[1])
}
const rawStatus = async (text: string): Promise<number> => Number((await system.say(text)).split(" ")[1])

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

describe("a token in a URL", () => {
  test("becomes a cookie for that preview alone, and is gone from the URL", async () => {
    const host = `${system.ownHost(mine)}:8080`
    const { status: code, headers } = await system.get(`/a/b?x=1&token=${system.token(mine)}&y=2`, {
      ...{ host, headers: { "x-warren-scheme": "https" } },
    })
    expect([code, headers["location"], headers["referrer-policy"]]).toEqual([303, "/a/b?x=1&y=2", "no-referrer"])
    expect(headers["cache-control"]).toBe("no-store")
    expect(headers["set-cookie"]?.[0]).toMatch(
      /^gateway_session=[\w-]{43}; Path=\/; Max-Age=900; HttpOnly; SameSite=Lax; Secure$/,
    )
  })

  test("by path takes a browser to the preview's own host name with a ticket that is good once, there", async () => {
    const asked = { host: "warren.localhost:8080", headers: { "sec-fetch-mode": "navigate" } }
    const first = await system.get(`${base()}/a?x=1&token=${system.token(mine)}`, asked)
    const host = `${system.ownHost(mine)}:8080`
    expect(first.status).toBe(303)
    expect(first.headers["set-cookie"]).toBeUndefined()
    const to = new URL(first.headers["location"] ?? "")
    expect([to.host, to.pathname, to.searchParams.get("x")]).toEqual([host, "/a", "1"])
    const path = `${to.pathname}${to.search}`
    const again = await system.get(`${base()}/?token=${system.token(mine)}`, asked)
    const stray = new URL(again.headers["location"] ?? "")
    await expectRefused(401, () => status(`/${stray.search}`, { host: system.ownHost(other) }))
    await expectRefused(401, () => status(`/${stray.search}`, { host }))
    const second = await system.get(path, { host })
    expect([second.status, second.headers["location"]]).toEqual([303, "/a?x=1"])
    await expectRefused(401, () => status(path, { host }))
    const late = await system.get(`${base()}/?token=${system.token(mine)}`, asked)
    system.clock.shiftMs = gatewayLimits.ticketMs + 1
    await expectRefused(401, () => status(`/${new URL(late.headers["location"] ?? "").search}`, { host }))
    system.clock.shiftMs = 0
  })

  test("by path, where there are no such names, becomes a cookie for its paths, in a sandboxed page", async () => {
    const path = join(system.root, "g2.sock")
    await using _ = await system.gateway(path, { domain: "", hosts: ["192.168.1.5"] })
    const asked = { host: "192.168.1.5:8080", headers: { "sec-fetch-mode": "navigate" } }
    const { headers } = await system.getAt(path, `${base()}/?token=${system.token(mine)}`, asked)
    expect(headers["location"]).toBe(`${base()}/`)
    expect(headers["set-cookie"]?.[0]).toContain(`Path=${base()}/; `)
    const cookie = headers["set-cookie"]?.[0]?.split(";")[0] ?? ""
    const page = await system.getAt(path, `${base()}/`, { ...asked, headers: { cookie } })
    expect(page.status).toBe(200)
    expect(page.headers["content-security-policy"]).toMatch(/^sandbox /)
  })

  test("is for opening a page, not for changing something", async () => {
    await expectRefused(400, () =>
      status(`/?token=${system.token(mine)}`, { host: system.ownHost(mine), method: "POST", body: "x" }),
    )
  })

  test("of the app's own is the app's", async () => {
    const { host, cookie } = await system.browser(mine)
    expect((await system.get("/?token=jupyter", { host, headers: { cookie } })).body).toContain("token=jupyter")
  })
})

describe("pages of others", () => {
  const origins = (own: string): string[] => [
    ...["null", "https://evil.example", `${own}.evil.example`, own.replace("http://", "http://evil"), `${own}:81`],
    ...[own.replace("http:", "https:"), own.toUpperCase(), "http://127.0.0.1", "http://warren.localhost", ""],
  ]
  test("open no WebSocket", async () => {
    const { host, cookie, origin } = await system.browser(mine)
    for (const foreign of origins(origin))
      await expectRefused(403, () => socketStatus("/", { host, headers: { cookie, origin: foreign } }))
    await expectRefused(403, () => socketStatus("/", { host, headers: { cookie } }))
    await expectRefused(403, () =>
      socketStatus(`${base()}/`, { headers: { ...system.bearer(mine), origin: "https://evil.example" } }),
    )
    expect(await socketStatus("/", { host, headers: { cookie, origin } })).toBe(101)
  })

  test("change nothing", async () => {
    const { host, cookie, origin } = await system.browser(mine)
    for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
      for (const foreign of origins(origin).slice(0, 3))
        await expectRefused(403, () => status("/", { host, method, headers: { cookie, origin: foreign } }))
      await expectRefused(403, () => status("/", { host, method, headers: { cookie } }))
      await expectRefused(403, () => status("/", { host, method, headers: { cookie, "sec-fetch-site": "same-site" } }))
      expect(await status("/", { host, method, headers: { cookie, origin } })).toBe(200)
      expect(await status("/", { host, method, headers: { cookie, "sec-fetch-site": "same-origin" } })).toBe(200)
    }
  })

  test("load nothing of it, but may lead to it", async () => {
    const { host, cookie } = await system.browser(mine)
    const get = (site: string, mode: string): Promise<number> =>
      status("/", { host, headers: { cookie, "sec-fetch-site": site, "sec-fetch-mode": mode } })
    for (const site of ["cross-site", "same-site"]) {
      await expectRefused(403, () => get(site, "no-cors"))
      await expectRefused(403, () => get(site, "cors"))
      expect(await get(site, "navigate")).toBe(200)
    }
    expect(await get("same-origin", "cors")).toBe(200)
  })

  test("load nothing of it by path either, where it has a name of its own", async () => {
    const given = await system.get(`${base()}/?token=${system.token(mine)}`, {})
    const cookie = given.headers["set-cookie"]?.[0]?.split(";")[0] ?? ""
    expect(await status(`${base()}/`, { headers: { cookie } })).toBe(200)
    const headers = { cookie, "sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors" }
    await expectRefused(403, () => status(`${base()}/`, { headers }))
  })

  test("are given leave to frame it only where it could be theirs", async () => {
    const path = join(system.root, "g3.sock")
    const hosts = ["localhost", "192.168.1.5", "[::1]"]
    await using _ = await system.gateway(path, { domain: "warren.localhost", hosts })
    const host = system.ownHost(mine)
    const { headers } = await system.getAt(path, "/headers", { host, headers: system.bearer(mine) })
    expect(headers["content-security-policy"]).toMatch(
      /frame-ancestors 'self' http:\/\/warren\.localhost http:\/\/localhost(?:;|,|$)/,
    )
  })

  test("are given no leave to read, and none to frame it", async () => {
    const { host, cookie } = await system.browser(mine)
    const { headers } = await system.get("/headers", { host, headers: { cookie, origin: "https://evil.example" } })
    expect(headers["access-control-allow-origin"]).toBeUndefined()
    expect(headers["content-security-policy"]).toContain("frame-ancestors 'self' http://warren.localhost")
    expect(
      await status("/", {
        host,
        method: "OPTIONS",
        headers: { origin: "https://evil.example", "access-control-request-method": "PUT" },
      }),
    ).toBe(401)
  })
})

test("what a program says cannot reach beyond its own preview", async () => {
  const { host, cookie } = await system.browser(mine)
  const { headers, status: code } = await system.get("/headers", { host, headers: { cookie } })
  expect(code).toBe(200)
  expect(headers["set-cookie"]).toEqual(["mine=1; HttpOnly; Path=/app", "other=2"])
  const gone = [
    "service-worker-allowed",
    "clear-site-data",
    "strict-transport-security",
    "alt-svc",
    "x-frame-options",
    "x-hop",
  ]
  for (const name of [...gone, "x-warren-woke-ms"]) expect(headers[name]).toBeUndefined()
  expect(headers["content-security-policy"]).toContain("script-src 'self'")
  expect(headers["x-app"]).toBe("kept")
  expect(headers["x-content-type-options"]).toBe("nosniff")
  const byPath = await system.get(`${base()}/headers`, { headers: system.bearer(mine) })
  expect(byPath.headers["set-cookie"]).toEqual([`mine=1; HttpOnly; Path=${base()}/app`, "other=2"])
})

test("a redirect is the browser's to follow", async () => {
  const server = createServer((_, response) => response.end("host secret"))
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
  const { port } = server.address() as AddressInfo
  const to = `http://127.0.0.1:${port}/`
  const answer = await system.get(`${base()}/redirect?to=${encodeURIComponent(to)}`, { headers: system.bearer(mine) })
  expect([answer.status, answer.headers["location"], answer.body]).toEqual([302, to, ""])
  await closeServer(server, [])
})

describe("requests that mean two things", () => {
  const head = (): string => `Host: localhost\r\nAuthorization: Bearer ${system.token(mine)}\r\n`
  const rows: [what: string, code: number, () => string][] = [
    ["two hosts", 400, () => `GET ${base()}/ HTTP/1.1\r\n${head()}Host: localhost\r\n\r\n`],
    ["no host", 400, () => `GET ${base()}/ HTTP/1.1\r\nAuthorization: Bearer ${system.token(mine)}\r\n\r\n`],
    ["an unknown host", 421, () => `GET ${base()}/ HTTP/1.1\r\nHost: evil.example\r\n\r\n`],
    ["an address as host", 421, () => `GET ${base()}/ HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n`],
    ["a host with a dot behind", 400, () => `GET ${base()}/ HTTP/1.1\r\nHost: localhost.\r\n\r\n`],
    ["absolute form", 400, () => `GET http://localhost${base()}/ HTTP/1.1\r\n${head()}\r\n`],
    ["absolute form elsewhere", 400, () => `GET http://169.254.169.254/ HTTP/1.1\r\n${head()}\r\n`],
    ["a path to a host", 400, () => `GET //evil.example${base()}/ HTTP/1.1\r\n${head()}\r\n`],
    ["a step up to another session", 400, () => `GET ${base()}/../../../${other}/t/3000/ HTTP/1.1\r\n${head()}\r\n`],
    ["an encoded step up", 400, () => `GET ${base()}/%2e%2e/%2e%2e/%2e%2e/${other}/t/3000/ HTTP/1.1\r\n${head()}\r\n`],
    ["an encoded slash", 400, () => `GET ${base()}/..%2f..%2f..%2f${other}%2ft%2f3000/ HTTP/1.1\r\n${head()}\r\n`],
    ["a backslash", 400, () => `GET ${base()}/\\..\\..\\..\\${other}/ HTTP/1.1\r\n${head()}\r\n`],
    ["encoded twice", 400, () => `GET ${base()}/%252e%252e/ HTTP/1.1\r\n${head()}\r\n`],
    ["empty steps", 400, () => `GET ${base()}//x HTTP/1.1\r\n${head()}\r\n`],
    ["a port with a host in it", 400, () => `GET /s/${mine}/t/3000@evil.example/ HTTP/1.1\r\n${head()}\r\n`],
    ["a port that is none", 400, () => `GET /s/${mine}/t/65536/ HTTP/1.1\r\n${head()}\r\n`],
    ["an asterisk", 400, () => `OPTIONS * HTTP/1.1\r\n${head()}\r\n`],
    ["CONNECT", 405, () => `CONNECT 127.0.0.1:22 HTTP/1.1\r\n${head()}\r\n`],
    ["TRACE", 405, () => `TRACE ${base()}/ HTTP/1.1\r\n${head()}\r\n`],
    ["another protocol", 400, () => `GET ${base()}/ HTTP/1.1\r\n${head()}Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n`],
    [
      "a WebSocket that is posted",
      400,
      () => `POST ${base()}/ HTTP/1.1\r\n${head()}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
    ],
    ["two lengths", 400, () => `POST ${base()}/ HTTP/1.1\r\n${head()}Content-Length: 1\r\nContent-Length: 2\r\n\r\nx`],
    [
      "a length and pieces",
      400,
      () => `POST ${base()}/ HTTP/1.1\r\n${head()}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    [
      "pieces and something else",
      400,
      () => `POST ${base()}/ HTTP/1.1\r\n${head()}Transfer-Encoding: chunked, x\r\n\r\n0\r\n\r\n`,
    ],
    ["a space before the colon", 400, () => `GET ${base()}/ HTTP/1.1\r\n${head()}X-Y : z\r\n\r\n`],
    ["a folded header", 400, () => `GET ${base()}/ HTTP/1.1\r\n${head()}X-Y: z\r\n more\r\n\r\n`],
    ["a NUL", 400, () => `GET ${base()}/ HTTP/1.1\r\n${head()}X-Y: z\0\r\n\r\n`],
    ["too long a head", 431, () => `GET ${base()}/ HTTP/1.1\r\n${head()}X-Y: ${"z".repeat(20_000)}\r\n\r\n`],
    ["nonsense", 400, () => "\x16\x03\x01\x02\x00\x01\x00\r\n\r\n"],
  ]
  test.each(rows)("%s", async (_, code, text) => {
    await expectRefused(code, () => rawStatus(text()))
  })

  test("headers that a Connection names are not taken for ours", async () => {
    const text = `GET ${base()}/ HTTP/1.1\r\n${head()}Connection: close, authorization, host, x-forwarded-host\r\n\r\n`
    const answer = await system.say(text)
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
    expect(answer).toContain('"X-Forwarded-Host","localhost"')
    expect(answer).not.toContain("Bearer")
  })

  test("a request behind a refused one is not answered", async () => {
    const first = `POST ${base()}/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n`
    const answer = await system.say(`${first}GET ${base()}/ HTTP/1.1\r\n${head()}\r\n`)
    expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1)
    expect(answer).toMatch(/^HTTP\/1\.1 401 /)
  })
})

describe("what is not inside", () => {
  test("is not reached: the machine's own ports, and another session's", async () => {
    const server = createServer((_, response) => response.end("host secret"))
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
    const { port } = server.address() as AddressInfo
    const answer = await system.get(`/s/${mine}/t/${port}/`, { headers: system.bearer(mine) })
    expect([answer.status, answer.body.includes("secret")]).toEqual([502, false])
    await system.serve(other, 3999)
    expect(await status(`/s/${mine}/t/3999/`, { headers: system.bearer(mine) })).toBe(502)
    await closeServer(server, [])
  })

  test("is not named by a tunnel: paths and sockets of the runner, hosts, and ports of a session that has none of its own", async () => {
    for (const port of [0, 65_536, -1, 1.5, "3000", "3000@evil", "/run/x.sock", system.socket, "127.0.0.1:22"])
      await expect(
        (async () => system.ask.call("tunnel.create", { session: mine, name: "evil", port: port as number }))(),
      ).rejects.toThrow()
    const shared = await system.ask.call("session.create", { network: { mode: "host" } })
    await expect(system.ask.call("tunnel.create", { session: shared.id, name: "ssh", port: 22 })).rejects.toMatchObject(
      {
        code: "forbidden",
      },
    )
    await expectRefused(403, () => status(`/s/${shared.id}/t/22/`, { headers: system.bearer(shared.id) }))
    await system.ask.call("session.delete", { id: shared.id })
  })
})

test("many sockets at once are gone inside when their clients are", async () => {
  const many = Array.from({ length: 20 }, () => system.upgrade(`${base(other)}/`, { headers: system.bearer(other) }))
  const opened = await Promise.all(many)
  expect(opened.every(({ head }) => head.startsWith("HTTP/1.1 101"))).toBe(true)
  const { gone = 0 } = await system.seen(other)
  for (const { socket } of opened) socket.destroy()
  await vi.waitFor(async () => expect((await system.seen(other))["gone"]).toBe(gone + 20), 10_000)
})
