import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { closeServer } from "@warren/base/unix-socket.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { gatewayLimits } from "./limits.ts"
import { TwoSessions } from "./testing/two-sessions.ts"

const system = new TwoSessions()
const { base, expectRefused, socketStatus, status } = system
let mine: string
let other: string
beforeAll(async () => {
  await system.open()
  ;({ mine, other } = system)
})
afterAll(() => system[Symbol.asyncDispose]())

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
