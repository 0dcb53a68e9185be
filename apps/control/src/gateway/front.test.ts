import { createPrivateKey, type KeyObject } from "node:crypto"
import { once } from "node:events"
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer, request as httpRequest, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { connect as connectHttp2, createServer as createServer2 } from "node:http2"
import { connect, type AddressInfo, type Socket } from "node:net"
import { PassThrough, type Readable } from "node:stream"
import { newId } from "@warren/base/id.ts"
import { silentLog } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { eventually } from "@warren/base/testing/eventually.ts"
import { signGatewayToken } from "@warren/protocol/gateway-token.ts"
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest"
import { hashOf } from "../secret.ts"
import type { UserRow } from "../store/users.ts"
import { TestControl } from "../testing/test-control.ts"
import { GatewayFront } from "./front.ts"

const scope = new Scope()
const session = newId("ses")
const uid = process.getuid?.() ?? 0
let system: TestControl
let front: GatewayFront
let server: Server
let port = 0
let key: KeyObject
let route: { socket: string; uid: number }
let gateway: Server
let bob: UserRow

const base = `/s/${session}/t/3000`
const portOf = (one: { address(): unknown }): number => (one.address() as AddressInfo).port

beforeAll(async () => {
  system = scope.use(await TestControl.open())
  const { control, metrics, clock, folder } = system
  key = createPrivateKey(readFileSync(folder.at("statement.key")))
  await system.person("bob")
  bob = (await control.store.users.byName("bob")) as UserRow
  control.ownership.learn("session.get", bob.id, { id: session })
  gateway = createServer(inside).on("upgrade", insideSocket).listen(folder.at("gateway.sock"))
  scope.defer(() => void gateway.close())
  await once(gateway, "listening")
  const names = { domain: "warren.localhost", hosts: new Set(["localhost:7777"]) }
  const parts = { names, scheme: "http", key: control.gatewayKey, metrics, clock, log: silentLog } as const
  front = scope.use(new GatewayFront({ ...control, ...parts, routeOf: async () => route }))
  server = createServer((_, response) => response.end("the page")).on("upgrade", (_, socket) => socket.end("the API"))
  front.guard(server)
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  port = portOf(server)
  scope.defer(() => (server.closeAllConnections(), void server.close()))
})
beforeEach(async () => {
  // Refusals of one minute are not all written down.
  await system.clock.advance(60_000)
  route = { socket: system.folder.at("bob.sock"), uid }
})
afterAll(() => scope.close())

/** What a runner's gateway would do, by the path. */
function inside(request: IncomingMessage, response: ServerResponse): void {
  const { url = "" } = request
  if (url.includes("/refuse")) response.setHeader("X-Warren-Refused", "forbidden").writeHead(403)
  if (url.includes("/break")) return void (response.write("half"), setImmediate(() => response.destroy()))
  if (url.includes("/hang")) return void response.write("begun")
  response.end(JSON.stringify({ url, headers: request.headers }))
}

function insideSocket(request: IncomingMessage, socket: Socket): void {
  if (request.url?.includes("/break")) return void socket.destroy()
  socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello")
  socket.on("error", () => socket.destroy())
}

interface Ask {
  readonly host?: string
  readonly headers?: Readonly<Record<string, string | string[]>>
}

/** The answer as it begins. */
async function begin(path: string, { host = "localhost:7777", headers = {} }: Ask = {}): Promise<IncomingMessage> {
  const sent = httpRequest({ port, host: "127.0.0.1", path, agent: false, headers: { host, ...headers } }).end()
  const [answer] = (await once(sent, "response")) as [IncomingMessage]
  answer.on("error", () => undefined)
  return answer
}

async function ask(path: string, asked: Ask = {}) {
  const answer = await begin(path, asked)
  let body = ""
  for await (const piece of answer.setEncoding("utf8")) body += String(piece)
  return { status: answer.statusCode, headers: answer.headers, body }
}

/** What is said on a connection to the end of it. */
async function say(text: string): Promise<string> {
  const socket = connect(port, "127.0.0.1").on("error", () => undefined)
  socket.write(text)
  let said = ""
  for await (const piece of socket.setEncoding("utf8")) said += String(piece)
  return said
}

/** However it ends. */
const ended = (one: Readable): Promise<void> => new Promise((done) => one.resume().once("close", done))
const socketTo = (path: string, ...headers: string[]): string =>
  [
    `GET ${path} HTTP/1.1`,
    "Host: localhost:7777",
    "Connection: Upgrade",
    "Upgrade: websocket",
    ...headers,
    "",
    "",
  ].join("\r\n")
const tokenFor = (via?: string, user = "bob", about = session): string =>
  signGatewayToken(key, { user, session: about, lifeS: 600, now: system.clock.now(), via })
const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
const refusals = async () => (await system.audit()).filter(({ action }) => action === "gateway.request")

/** A token of bob's, and how to take it back. */
async function viaOfBob(): Promise<{ id: string; revoke(): Promise<unknown> }> {
  const { store } = system.control
  const id = newId("tok")
  const about = { label: "", scopes: "ports", namePrefix: undefined, sessionsMax: undefined, usedAt: undefined }
  const row = { ...about, id, userId: bob.id, hash: hashOf(id), requestsPerMinute: undefined, expiresAt: undefined }
  await store.tokens.add({ ...row, createdAt: system.clock.now() }, 100)
  return { id, revoke: () => store.tokens.revoke(bob.id, id) }
}

describe("what is for a gateway", () => {
  test("goes to the runner of whose session it is, with who came; the rest goes where it went", async () => {
    const { status, body } = await ask(`${base}/x?y=1`, { headers: { "x-warren-client": "6.6.6.6" } })
    expect([status, JSON.parse(body)]).toMatchObject([
      200,
      { url: `${base}/x?y=1`, headers: { "x-warren-client": "127.0.0.1", "x-warren-scheme": "http" } },
    ])
    expect((await ask("/")).body).toBe("the page")
    expect(await say(socketTo("/v1/x"))).toBe("the API")
    expect(await say("GET / HTTP/1.0\r\n\r\n")).toContain("the page")
    expect(await say(`GET ${base}/ HTTP/1.0\r\n\r\n`)).toMatch(/^HTTP\/1\.1 403 /)
  })

  test("over HTTP/2, too, by the name that counts there", async () => {
    const second = createServer2()
    second.on("request", (_, response) => response.end("the page"))
    front.guard(second)
    second.listen(0, "127.0.0.1")
    await once(second, "listening")
    const client = connectHttp2(`http://127.0.0.1:${portOf(second)}`)
    const answer = async (path: string, authority: string) => {
      const sent = client.request({ ":path": path, ":authority": authority })
      const [{ ":status": status }] = (await once(sent, "response")) as [Record<string, unknown>]
      let body = ""
      for await (const piece of sent.setEncoding("utf8")) body += String(piece)
      return { status, body }
    }
    const own = `3000-${session.slice(4)}.warren.localhost:7777`
    expect(JSON.parse((await answer("/x", own)).body)).toMatchObject({ url: "/x", headers: { host: own } })
    expect(await answer("/", "localhost:7777")).toEqual({ status: 200, body: "the page" })
    expect((await answer(`${base}/x`, "evil.example")).status).toBe(403)
    client.close()
    second.close()
  })

  test("is refused where it can be for nobody, and that is written down", async () => {
    expect((await ask(`${base}/`, { host: "evil.example" })).status).toBe(403)
    expect((await ask("/s/ses_nonsense/t/3000/")).status).toBe(404)
    expect(await say(`GET ${base}/ HTTP/1.1\r\nHost: localhost:7777\r\nHost: localhost:7777\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 400 /,
    )
    expect((await ask(`/s/${newId("ses")}/t/3000/`)).status).toBe(401)
    const noted = (await refusals()).slice(-4)
    expect(noted.map(({ subject, result }) => [subject === session, result])).toEqual([
      ...[
        [true, "forbidden"],
        [false, "not_found"],
        [true, "invalid"],
        [false, "unauthenticated"],
      ],
    ])
    expect(noted[1]).toMatchObject({ subject: "", address: "127.0.0.1" })
  })

  test("is refused in words that a browser keeps nowhere and takes for nothing else", async () => {
    const { status, headers, body } = await ask(`/s/${newId("ses")}/t/3000/`)
    expect([status, body]).toEqual([401, "this is not open to everybody (open it from Warren)\n"])
    expect(headers).toMatchObject({
      ...{ "content-security-policy": "default-src 'none'; frame-ancestors 'none'", "cache-control": "no-store" },
      ...{ "x-content-type-options": "nosniff", "referrer-policy": "no-referrer", connection: "close" },
    })
  })

  test("that the gateway refuses is written down, and its word to us is for us", async () => {
    const before = (await refusals()).length
    const { status, headers } = await ask(`${base}/refuse`)
    expect([status, headers["x-warren-refused"]]).toEqual([403, undefined])
    while ((await refusals()).length === before) await new Promise(setImmediate)
    expect((await refusals()).at(-1)).toMatchObject({ subject: session, result: "forbidden" })
  })
})

describe("what somebody is let in with", () => {
  test("has to count still, wherever in a request it is, and whatever else is there", async () => {
    const via = await viaOfBob()
    const token = tokenFor(via.id)
    const app = { authorization: "Bearer of-the-app" }
    const ways: [string, Ask][] = [
      [`${base}/`, bearer(token)],
      [`${base}/?token=${token}`, {}],
      [`${base}/?token=${token}`, { headers: app }],
      [`${base}/?token=of-the-app&token=${token}`, {}],
      [`${base}/?token=tkt_${"s".repeat(43)}.${via.id}`, { headers: app }],
    ]
    for (const [path, asked] of ways) expect((await ask(path, asked)).status).toBe(200)
    await via.revoke()
    for (const [path, asked] of ways) expect([path, (await ask(path, asked)).status]).toEqual([path, 401])
    const socket = await say(socketTo(`${base}/?token=${token}`, "Authorization: Bearer of-the-app"))
    expect(socket).toMatch(/^HTTP\/1\.1 401 /)
  })

  test("has to be of whose session it is", async () => {
    const olga = await system.ask("/v1/tokens", { token: await system.ownerToken(), body: { scopes: ["ports"] } })
    expect((await ask(`${base}/`, bearer(tokenFor(olga.body.about.id)))).status).toBe(401)
  })

  test("says whose runner it is for, where nobody has said whose the session is", async () => {
    const about = newId("ses")
    expect((await ask(`/s/${about}/t/3000/`, bearer(tokenFor(undefined, "bob", about)))).status).toBe(200)
    expect((await ask(`/s/${about}/t/3000/`, bearer(tokenFor(undefined, "nobody", about)))).status).toBe(401)
    const { status, body } = await ask("/api/tunnels", bearer(tokenFor()))
    expect([status, JSON.parse(body).url]).toEqual([200, "/api/tunnels"])
    expect((await ask("/api/tunnels")).status).toBe(401)
  })

  test("goes on without what does not count any more", async () => {
    const [one, other] = [await viaOfBob(), await viaOfBob()]
    await other.revoke()
    const cookie = `a=1; ${[one, other].map(({ id }) => `gateway_session=${"s".repeat(43)}.${id}`).join("; ")}`
    const { body } = await ask(`${base}/`, { headers: { cookie } })
    expect(JSON.parse(body).headers.cookie).toBe(`a=1; gateway_session=${"s".repeat(43)}.${one.id}`)
  })

  test("cuts what is open when it ends, and nothing else", async () => {
    const { watch } = system.control
    const [one, other] = [await viaOfBob(), await viaOfBob()]
    const [mine, theirs, plain] = await Promise.all([
      ...[begin(`${base}/hang`, bearer(tokenFor(one.id))), begin(`${base}/hang`, bearer(tokenFor(other.id)))],
      begin(`${base}/hang`),
    ])
    const socket = connect(port, "127.0.0.1").on("error", () => undefined)
    socket.write(socketTo(`${base}/socket`, `Cookie: gateway_session=${"s".repeat(43)}.${one.id}`))
    const [said] = (await once(socket.setEncoding("utf8"), "data")) as [string]
    expect(said).toMatch(/^HTTP\/1\.1 101 /)
    await watch.look()
    await one.revoke()
    const closed = [mine, socket].map((open) => open && ended(open))
    await watch.look()
    await Promise.all(closed)
    expect([theirs?.destroyed, plain?.destroyed]).toEqual([false, false])
    theirs?.destroy()
    plain?.destroy()
  })
})

describe("whose session it is", () => {
  test("does not matter any more when they may not: what is open is cut, and nothing is opened", async () => {
    const { store, watch } = system.control
    const open = await begin(`${base}/hang`)
    await store.users.change(bob.id, { role: "member", isDisabled: true })
    const closed = ended(open)
    await watch.look()
    await closed
    expect((await ask(`${base}/`)).status).toBe(401)
    await store.users.change(bob.id, { role: "member", isDisabled: false })
    expect((await ask(`${base}/`)).status).toBe(200)
  })

  test("nor when they are gone", async () => {
    const { store, watch, ownership } = system.control
    const eve = { id: newId("usr"), name: "eve", role: "member", isDisabled: false, createdAt: 1 } as const
    await store.users.add(eve)
    const hers = newId("ses")
    ownership.learn("session.get", eve.id, { id: hers })
    const open = await begin(`/s/${hers}/t/3000/hang`)
    await store.users.delete(eve.id)
    const closed = ended(open)
    await watch.look()
    await closed
    expect((await ask(`/s/${hers}/t/3000/`)).status).toBe(401)
  })
})

describe("a runner", () => {
  test("whose socket is somebody else's, or no socket, is told nothing", async () => {
    const { folder } = system
    const before = (await refusals()).length
    route = { ...route, uid: uid + 1 }
    expect((await ask(`${base}/`)).status).toBe(503)
    const at = async (make: (path: string) => void): Promise<number | undefined> => {
      const place = folder.at(newId("dir"))
      mkdirSync(place)
      make(`${place}/gateway.sock`)
      route = { socket: `${place}/bob.sock`, uid }
      return (await ask(`${base}/`)).status
    }
    expect(await at(() => undefined)).toBe(503)
    expect(await at((path) => writeFileSync(path, ""))).toBe(503)
    expect(await at((path) => symlinkSync(folder.at("gateway.sock"), path))).toBe(503)
    expect(await say(socketTo(`${base}/`))).toMatch(/^HTTP\/1\.1 503 /)
    // That nobody answers is nobody's refusal.
    expect((await refusals()).length).toBe(before)
  })

  test("that breaks off is not taken for one that has ended, and is nobody's refusal", async () => {
    const before = (await refusals()).length
    await expect(ask(`${base}/break`)).rejects.toThrow()
    expect(await say(socketTo(`${base}/break`))).toMatch(/^HTTP\/1\.1 503 /)
    expect((await refusals()).length).toBe(before)
  })
})

describe("a connection on which no HTTP is spoken", () => {
  const unreadable = async () => (await system.audit()).filter(({ action }) => action === "request.unreadable")

  test("is told so, and that is written down", async () => {
    const before = (await unreadable()).length
    expect(await say("no HTTP at all\r\n\r\n")).toMatch(/^HTTP\/1\.1 400 /)
    expect(await say(`GET / HTTP/1.1\r\nHost: localhost:7777\r\nX: ${"x".repeat(20_000)}\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 431 /,
    )
    expect((await unreadable()).length).toBe(before + 2)
  })

  test("because somebody hung up, or was told already, is nothing to write down", async () => {
    const before = (await unreadable()).length
    const reset = connect(port, "127.0.0.1").on("error", () => undefined)
    const failed = new Promise((done) => server.once("clientError", done))
    await Promise.all([once(server, "connection"), once(reset, "connect")])
    reset.resetAndDestroy()
    expect(await failed).toMatchObject({ code: "ECONNRESET" })
    server.emit("clientError", new Error("again"), new PassThrough().end())
    expect((await unreadable()).length).toBe(before)
  })

  test("in time is heard once more before it is sent away; one that is silent is sent away, and so is nonsense", async () => {
    const late = Object.assign(new Error("late"), { code: "ERR_HTTP_REQUEST_TIMEOUT" })
    /** How many more are written down when this goes wrong just before a request is heard. */
    const noted = async (error: Error): Promise<number> => {
      const before = (await unreadable()).length
      server.prependOnceListener("request", ({ socket }) => server.emit("clientError", error, socket))
      await ask("/", { headers: { connection: "keep-alive" } })
      await new Promise(setImmediate)
      return (await unreadable()).length - before
    }
    expect([await noted(late), await noted(new Error("nonsense"))]).toEqual([0, 1])
    const before = (await unreadable()).length
    const silent = new PassThrough()
    server.emit("clientError", late, silent)
    await once(silent, "close")
    expect((await unreadable()).length).toBe(before + 1)
  })
})

test("what became of requests is counted", async () => {
  const counted = (status: number): number => {
    const line = new RegExp(`_count\\{call="gateway\\.request",status="${status}"\\} (\\d+)`)
    return Number(line.exec(system.metrics.text())?.[1] ?? 0)
  }
  const before = [200, 401].map(counted)
  await ask(`${base}/`)
  await ask(`/s/${newId("ses")}/t/3000/`)
  await eventually(() => [200, 401].every((status, at) => counted(status) === (before[at] ?? 0) + 1))
  expect(system.metrics.inFlight).toBe(0)
})
