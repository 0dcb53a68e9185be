import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { closeServer } from "@warren/base/unix-socket.ts"
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest"
import { TwoSessions } from "./testing/two-sessions.ts"

const system = new TwoSessions()
const { base, expectRefused, rawStatus, status } = system
let mine: string
let other: string
beforeAll(async () => {
  await system.open()
  ;({ mine, other } = system)
})
afterAll(() => system[Symbol.asyncDispose]())

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
