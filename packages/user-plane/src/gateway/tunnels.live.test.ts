import { once } from "node:events"
import { onFailpoint } from "@warren/base/failpoint.ts"
import { Fault } from "@warren/base/fault.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { TunnelEvent } from "@warren/protocol/user-plane/tunnels.ts"
import type { Numbered } from "@warren/protocol/contract.ts"
import { gatewayLimits } from "./limits.ts"
import { GatewaySystem, insidePort } from "./testing/gateway-system.ts"

const system = new GatewaySystem()
let session: string
beforeAll(async () => {
  await system.open()
  session = await system.session({ name: "tunnelled" })
})
afterAll(() => system[Symbol.asyncDispose]())

const create = (name: string, more: object = {}) =>
  system.ask.call("tunnel.create", { session, name, port: insidePort, ...more })
const remove = (name: string) => system.ask.call("tunnel.delete", { session, name })
const status = async (...asked: Parameters<GatewaySystem["get"]>): Promise<number> =>
  (await system.get(...asked)).status

describe("a tunnel", () => {
  test("is made, listed in pages, and deleted; twice is once", async () => {
    const { tunnel, token } = await create("web")
    expect(token).toBeUndefined()
    expect(tunnel).toMatchObject({
      ...{ session, name: "web", port: insidePort, protocol: "auto", visibility: "private" },
      ...{ path: `/s/${session}/t/web/`, label: `web-${session.slice(4)}` },
    })
    await expect(create("web")).rejects.toMatchObject({ code: "conflict" })
    const { tunnel: second } = await create("api")
    const first = await system.ask.call("tunnel.list", { session: "tunnelled", limit: 1 })
    expect(first.items).toEqual([tunnel])
    const rest = await system.ask.call("tunnel.list", { limit: 1, cursor: first.nextCursor })
    expect(rest).toEqual({ items: [second] })
    expect(await remove("web")).toEqual({ isDeleted: true })
    expect(await remove("web")).toEqual({ isDeleted: false })
    await remove("api")
    await expect(system.ask.call("tunnel.list", { cursor: "x" })).rejects.toMatchObject({ code: "invalid" })
    await expect(system.ask.call("tunnel.create", { session: "nobody", name: "a", port: 1 })).rejects.toMatchObject({
      code: "not_found",
    })
  })

  test("that could not be made is not in the way of the same again", async () => {
    let left = 1
    using _ = onFailpoint((name) => {
      if (name === "tunnel/noted" && left-- === 1) throw new Fault("unavailable", "the disk does not answer")
    })
    await expect(create("again")).rejects.toMatchObject({ code: "unavailable" })
    expect((await system.ask.call("tunnel.list", { session })).items).toEqual([])
    await create("again")
    expect((await system.ask.call("tunnel.list", { session })).items).toMatchObject([{ name: "again" }])
    await remove("again")
  })

  test("leads to its port, by path and by its own name, also by seed 003's paths", async () => {
    await create("vscode")
    expect(await status(`/s/${session}/t/vscode/`, { headers: system.bearer(session) })).toBe(200)
    expect(await status(`/s/${session}/vscode/x`, { headers: system.bearer(session) })).toBe(200)
    const { host, cookie } = await system.browser(session, "vscode")
    expect(await status("/", { host, headers: { cookie } })).toBe(200)
    expect(await status(`/s/${session}/t/nothing/`, { headers: system.bearer(session) })).toBe(404)
    // Who may not know what there is learns nothing.
    expect(await status(`/s/${session}/t/nothing/`)).toBe(401)
    expect(await status(`/s/${session}/t/vscode/`)).toBe(401)
    await remove("vscode")
    // What is there of Warren itself is not for who was let in to ports.
    expect(await status("/", { host, headers: { cookie } })).toBe(403)
  })

  test("that is public is open to everybody, at its name alone", async () => {
    const { tunnel } = await create("open", { visibility: "public" })
    expect(await status(tunnel.path)).toBe(200)
    const host = `${tunnel.label}.warren.localhost`
    const answer = await system.get("/headers", { host, headers: { origin: "https://example.com" } })
    expect([answer.status, answer.headers["access-control-allow-origin"]]).toEqual([200, "*"])
    expect(await status(`/s/${session}/t/${insidePort}/`)).toBe(401)
    const { head, socket } = await system.upgrade("/", { host, headers: { origin: "https://example.com" } })
    expect(head).toMatch(/^HTTP\/1\.1 101 /)
    const closed = once(socket, "close")
    socket.resume()
    await remove("open")
    await closed
    expect(await status("/", { host })).toBe(401)
  })

  test("that is a link is open to who has it, until it is taken away, also for what is open then", async () => {
    const { tunnel, token = "" } = await create("shared", { visibility: "link" })
    expect(token).toMatch(/^lnk_[\w-]{43}$/)
    const host = `${tunnel.label}.warren.localhost`
    expect(await status("/", { host })).toBe(401)
    // A link is opened by many, many times.
    await system.get(`/?token=${token}`, { host })
    const { headers } = await system.get(`/?token=${token}`, { host })
    const cookie = headers["set-cookie"]?.[0]?.split(";")[0] ?? ""
    const page = await system.get("/x?y", { host, headers: { cookie } })
    expect(page.status).toBe(200)
    expect(page.body).not.toContain("lnk_")
    const bearer = { authorization: `Bearer ${token}` }
    expect(await status(tunnel.path, { headers: bearer })).toBe(200)
    expect(await status(`/s/${session}/t/${insidePort}/`, { headers: bearer })).toBe(401)
    expect(await status("/api/tunnels", { headers: bearer })).toBe(401)
    const { socket } = await system.upgrade("/", { host, headers: { cookie, origin: `http://${host}` } })
    const closed = once(socket, "close")
    socket.resume()
    await remove("shared")
    await closed
    expect(await status("/", { host, headers: { cookie } })).toBe(401)
    // The next one of the same name is another one.
    await create("shared", { visibility: "link" })
    expect(await status("/", { host, headers: { cookie } })).toBe(401)
    expect(await status(tunnel.path, { headers: bearer })).toBe(401)
    await remove("shared")
  })

  test("for one protocol refuses the other", async () => {
    await create("plain", { protocol: "http" })
    await create("socket", { protocol: "ws" })
    const headers = system.bearer(session)
    expect(await status(`/s/${session}/t/plain/`, { headers })).toBe(200)
    expect((await system.upgrade(`/s/${session}/t/plain/`, { headers })).head).toMatch(/^HTTP\/1\.1 403 /)
    expect(await status(`/s/${session}/t/socket/`, { headers })).toBe(403)
    const { head, socket } = await system.upgrade(`/s/${session}/t/socket/`, { headers })
    expect(head).toMatch(/^HTTP\/1\.1 101 /)
    socket.destroy()
    await remove("plain")
    await remove("socket")
  })

  test("is one of so many", async () => {
    const { id } = await system.ask.call("session.create", { network: { mode: "none" } })
    for (let i = 0; i < gatewayLimits.tunnelsPerSessionMax; i++)
      await system.ask.call("tunnel.create", { session: id, name: `t${i}`, port: 80 })
    await expect(system.ask.call("tunnel.create", { session: id, name: "more", port: 80 })).rejects.toMatchObject({
      code: "limit",
    })
    await system.ask.call("session.delete", { id })
  })
})

test("tunnels are followed as they come and go, and go with their session", async () => {
  const stop = new AbortController()
  const context = { signal: stop.signal, caller: { name: "tester" } }
  const after = system.plane.tunnels.events.last
  const whole = system.plane.handlers["tunnel.follow"]({ after }, context)[Symbol.asyncIterator]()
  const { id } = await system.ask.call("session.create", { network: { mode: "none" } })
  const feed = system.plane.handlers["tunnel.follow"]({ session: id, after }, context)[Symbol.asyncIterator]()
  const next = async (): Promise<[string, string]> => {
    const { value } = (await feed.next()) as { value: Numbered<TunnelEvent> }
    return [value.item.event, value.item.tunnel.name]
  }
  await create("elsewhere")
  await system.ask.call("tunnel.create", { session: id, name: "a", port: 80 })
  await system.ask.call("tunnel.create", { session: id, name: "b", port: 81, visibility: "public" })
  const of = async (which: string) =>
    (await system.ask.call("tunnel.list", { session: which })).items.map(({ name }) => name)
  expect([await of(id), await of(session)]).toEqual([["a", "b"], ["elsewhere"]])
  const first = (await whole.next()) as { value: Numbered<TunnelEvent> }
  expect(first.value.item.tunnel.name).toBe("elsewhere")
  await system.ask.call("tunnel.delete", { session: id, name: "a" })
  expect([await next(), await next(), await next()]).toEqual([
    ["created", "a"],
    ["created", "b"],
    ["deleted", "a"],
  ])
  await system.ask.call("session.delete", { id })
  expect(await next()).toEqual(["deleted", "b"])
  expect((await system.ask.call("tunnel.list", {})).items.map(({ name }) => name)).toEqual(["elsewhere"])
  expect(await status(`/s/${id}/t/b/`)).toBe(401)
  await remove("elsewhere")
  stop.abort()
})

describe("the gateway's own API", () => {
  const headers = (): { authorization: string } => system.bearer(session)
  const post = (body: unknown, more: object = {}) =>
    system.get("/api/tunnels", { method: "POST", headers: { ...headers(), ...more }, body: JSON.stringify(body) })

  test("names ports of the session whose token is used, for its owner alone", async () => {
    const made = await post({ name: "dev", port: insidePort })
    expect([made.status, JSON.parse(made.body)]).toMatchObject([
      201,
      { tunnel: { session, name: "dev", visibility: "private" } },
    ])
    const listed = await system.get("/api/tunnels", { headers: headers() })
    expect(listed.headers["cache-control"]).toBe("no-store")
    expect(JSON.parse(listed.body)).toMatchObject({ tunnels: [{ name: "dev" }] })
    expect((await system.get("/api/tunnels/dev", { method: "DELETE", headers: headers() })).status).toBe(200)
    expect((await system.get("/api/tunnels/dev", { method: "DELETE", headers: headers() })).status).toBe(404)
  })

  test("opens nothing to others, and takes nothing that is not one", async () => {
    for (const visibility of ["public", "link"])
      expect((await post({ name: "x", port: 80, visibility })).status).toBe(400)
    for (const wrong of [{}, { name: "X", port: 80 }, { name: "x", port: 0 }, { name: "x", port: "80" }, [], null, "x"])
      expect((await post(wrong)).status).toBe(400)
    expect((await system.get("/api/tunnels", { method: "POST", headers: headers(), body: "{" })).status).toBe(400)
    expect((await post({ name: "x", port: 80, more: "z".repeat(gatewayLimits.apiBytesMax) })).status).toBe(413)
    expect((await system.get("/api/tunnels", { method: "PUT", headers: headers() })).status).toBe(405)
    expect((await system.ask.call("tunnel.list", {})).items).toEqual([])
    await post({ name: "dev", port: insidePort })
    const body = JSON.stringify({ name: "more", port: insidePort })
    const wrong = [
      { path: "/api/tunnels/dev", method: "GET" },
      { path: "/api/tunnels/dev", method: "POST", body },
      { path: "/api/tunnels/dev", method: "PUT", body },
      { path: "/api/tunnels", method: "PUT", body },
      { path: "/api/tunnels", method: "DELETE" },
    ]
    for (const { path, ...asked } of wrong)
      expect([asked.method, path, await status(path, { ...asked, headers: headers() })]).toEqual([
        ...[asked.method, path, 405],
      ])
    expect((await system.ask.call("tunnel.list", {})).items).toMatchObject([{ name: "dev" }])
    await remove("dev")
  })

  test("is not opened by a cookie, by a token in a URL, or by one for a port", async () => {
    const { cookie, host } = await system.browser(session)
    expect(await status("/api/tunnels", { headers: { cookie } })).toBe(401)
    expect(await status(`/api/tunnels?token=${system.token(session)}`)).toBe(401)
    expect(await status("/api/tunnels", { headers: system.bearer(session, insidePort) })).toBe(403)
    // At a preview's own host name that path is the program's.
    expect((await system.get("/api/tunnels", { host, headers: { cookie } })).body).toContain('"url":"/api/tunnels"')
  })
})
