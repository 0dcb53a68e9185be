import { createHash } from "node:crypto"
import { once } from "node:events"
import { request as httpRequest, type IncomingMessage } from "node:http"
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest"
import { GatewaySystem, insidePort } from "./testing/gateway-system.ts"

const system = new GatewaySystem()
let session: string
let base: string
beforeAll(async () => {
  await system.open()
  session = await system.session()
  base = `/s/${session}/t/${insidePort}`
})
afterAll(() => system[Symbol.asyncDispose]())

interface Echo {
  readonly method: string
  readonly url: string
  readonly headers: string[]
  readonly body: string
}
const echoed = (body: string): Echo & { header(name: string): string | undefined } => {
  const echo = JSON.parse(body) as Echo
  const at = (name: string): number => echo.headers.findIndex((one, i) => i % 2 === 0 && one.toLowerCase() === name)
  return { ...echo, header: (name) => (at(name) < 0 ? undefined : echo.headers[at(name) + 1]) }
}

describe("requests to a program inside", () => {
  test.each(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])("%s arrives as it was sent", async (method) => {
    const hasBody = method !== "GET" && method !== "OPTIONS"
    const { status, body } = await system.get(`${base}/a/b%20c?x=1&y=%2F..`, {
      ...{ method, headers: { ...system.bearer(session), "x-mine": "1" } },
      ...(hasBody ? { body: "hello" } : {}),
    })
    expect(status).toBe(200)
    expect(echoed(body)).toMatchObject({ method, url: "/a/b%20c?x=1&y=%2F..", body: hasBody ? "hello" : "" })
    expect(echoed(body).header("x-mine")).toBe("1")
  })

  test("HEAD has a head and no body", async () => {
    const { status, body, headers } = await system.get(`${base}/download?bytes=100`, {
      ...{ method: "HEAD", headers: system.bearer(session) },
    })
    expect({ status, body, length: headers["content-length"] }).toEqual({ status: 200, body: "", length: "100" })
  })

  test("say who is asked, how, and from where, and nothing of ours", async () => {
    const { host, cookie } = await system.browser(session)
    const headers = {
      ...{
        cookie: `a=1; ${cookie}; b=2`,
        "x-forwarded-for": "6.6.6.6",
        "x-forwarded-host": "evil",
        forwarded: "for=6.6.6.6",
      },
      ...{
        x_forwarded_for: "6.6.6.6",
        "x-real-ip": "6.6.6.6",
        "x-warren-client": "10.0.0.9",
        "x-warren-scheme": "https",
      },
      ...{
        connection: "x-drop",
        "x-drop": "1",
        te: "trailers",
        "proxy-authorization": "x",
        authorization: "Bearer of-the-app",
      },
    }
    const { body } = await system.get("/deep/path", { host: `${host}:8443`, headers })
    const echo = echoed(body)
    expect(echo.url).toBe("/deep/path")
    expect(echo.header("host")).toBe(`${host}:8443`)
    expect(echo.header("cookie")).toBe("a=1; b=2")
    expect(echo.header("authorization")).toBe("Bearer of-the-app")
    expect(echo.header("x-forwarded-for")).toBe("10.0.0.9")
    expect(echo.header("x-forwarded-host")).toBe(`${host}:8443`)
    expect(echo.header("x-forwarded-proto")).toBe("https")
    const names = echo.headers.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase())
    for (const gone of ["x-drop", "te", "proxy-authorization", "forwarded", "x_forwarded_for", "x-real-ip"])
      expect(names).not.toContain(gone)
    expect(names.filter((name) => name.startsWith("x-warren"))).toEqual([])
    expect(names.filter((name) => name === "x-forwarded-for")).toHaveLength(1)
  })

  test("by path know what stands before them", async () => {
    const { body } = await system.get(`${base}/x`, { headers: system.bearer(session) })
    expect(echoed(body).header("x-forwarded-prefix")).toBe(base)
    expect(echoed(body).header("authorization")).toBeUndefined()
    const moved = await system.get(base)
    expect([moved.status, moved.headers["location"]]).toEqual([308, `${base}/`])
  })

  test("pass 100 MB up, byte for byte, in bounded memory", async () => {
    const bytes = 100 * 1024 * 1024
    const piece = Buffer.alloc(1024 * 1024, "0123456789abcdef")
    const hash = createHash("sha256")
    const before = process.memoryUsage().rss
    let most = 0
    const sent = httpRequest({
      ...{ socketPath: system.socket, path: `${base}/upload`, method: "POST", agent: false },
      headers: { host: "localhost", "content-length": bytes, ...system.bearer(session) },
    })
    const answer = once(sent, "response") as Promise<[IncomingMessage]>
    for (let i = 0; i < bytes; i += piece.length) {
      piece.writeUInt32BE(i, 0)
      const copy = Buffer.from(piece)
      hash.update(copy)
      if (!sent.write(copy)) await once(sent, "drain")
      most = Math.max(most, process.memoryUsage().rss)
    }
    sent.end()
    const [incoming] = await answer
    const [body] = (await once(incoming, "data")) as [Buffer]
    expect(JSON.parse(body.toString())).toEqual({ bytes, sha256: hash.digest("hex") })
    // Client, gateway and their garbage are all in this process.
    expect(most - before).toBeLessThan(80 * 1024 * 1024)
  })

  test("pass 100 MB down, byte for byte, in bounded memory", async () => {
    const bytes = 100 * 1024 * 1024
    const chunk = Buffer.from(Array.from({ length: 256 * 1024 }, (_, i) => (i * 31) % 251))
    const expected = createHash("sha256")
    for (let i = 0; i < bytes; i += chunk.length) expected.update(chunk)
    const before = process.memoryUsage().rss
    let most = 0
    const hash = createHash("sha256")
    const incoming = await begin(`${base}/download?bytes=${bytes}`)
    for await (const piece of incoming as AsyncIterable<Buffer>) {
      hash.update(piece)
      most = Math.max(most, process.memoryUsage().rss)
    }
    expect(hash.digest("hex")).toBe(expected.digest("hex"))
    expect(most - before).toBeLessThan(80 * 1024 * 1024)
  })

  test("a reader that does not read holds the program back", async () => {
    const bytes = 200 * 1024 * 1024
    const incoming = await begin(`${base}/download?bytes=${bytes}`)
    incoming.pause()
    let last = -1
    await vi.waitFor(
      async () => {
        const { sent = 0 } = await system.seen(session)
        const isStill = sent === last
        last = sent
        expect(isStill).toBe(true)
      },
      { timeout: 20_000, interval: 300 },
    )
    expect(last).toBeLessThan(bytes / 4)
    incoming.destroy()
  })

  test("events come one by one, as they happen", async () => {
    const incoming = await begin(`${base}/events`)
    expect(incoming.headers["content-type"]).toBe("text/event-stream")
    const pieces = incoming[Symbol.asyncIterator]() as AsyncIterator<Buffer>
    expect((await pieces.next()).value?.toString()).toBe("data: first\n\n")
    await system.get(`${base}/event`, { headers: system.bearer(session) })
    expect((await pieces.next()).value?.toString()).toBe("data: next\n\n")
    incoming.destroy()
  })

  test("a client that goes away is gone for the program, too", async () => {
    const { gone = 0, waiting = 0 } = await system.seen(session)
    const sent = httpRequest({
      ...{ socketPath: system.socket, path: `${base}/hang`, agent: false },
      headers: { host: "localhost", ...system.bearer(session) },
    })
    sent.on("error", () => undefined).end()
    await vi.waitFor(async () => expect((await system.seen(session))["waiting"]).toBe(waiting + 1), 10_000)
    sent.destroy()
    await vi.waitFor(async () => expect((await system.seen(session))["gone"]).toBeGreaterThan(gone), 10_000)
  })

  test("a program that breaks off in the middle is not taken for one that has ended", async () => {
    const incoming = await begin(`${base}/break`)
    const read = async (): Promise<void> => {
      for await (const _ of incoming);
    }
    await expect(read()).rejects.toThrow()
  })

  test("what waits to be told to send its body is told by the program, or answered by it", async () => {
    const { continued = 0 } = await system.seen(session)
    const ask = (path: string) => {
      const sent = httpRequest({
        ...{ socketPath: system.socket, path: `${base}${path}`, method: "PUT", agent: false },
        headers: { host: "localhost", expect: "100-continue", "content-length": 4, ...system.bearer(session) },
      })
      sent.flushHeaders()
      return sent
    }
    const told = ask("/upload")
    await once(told, "continue")
    told.end("body")
    const [incoming] = (await once(told, "response")) as [IncomingMessage]
    incoming.resume()
    expect(incoming.statusCode).toBe(200)
    expect((await system.seen(session))["continued"]).toBe(continued + 1)
    const refused = ask("/refuse-upload")
    let isTold = false
    refused.on("continue", () => (isTold = true)).on("error", () => undefined)
    const [answer] = (await once(refused, "response")) as [IncomingMessage]
    expect([answer.statusCode, isTold]).toEqual([413, false])
    refused.destroy()
  })

  test("trailers follow the body", async () => {
    const { body, trailers } = await system.get(`${base}/trailers`, {
      headers: { te: "trailers", ...system.bearer(session) },
    })
    expect([body, trailers]).toEqual(["body", { "x-sum": "42" }])
  })

  test("connections inside are used again, and one that was closed meanwhile is no failure", async () => {
    const { connections = 0 } = await system.seen(session)
    for (let i = 0; i < 5; i++) await system.get(`${base}/x`, { headers: system.bearer(session) })
    expect((await system.seen(session))["connections"]).toBe(connections)
    for (let i = 0; i < 5; i++) {
      const { body } = await system.get(`${base}/once`, { headers: system.bearer(session) })
      expect(body).toBe("then closed")
      expect((await system.get(`${base}/x`, { headers: system.bearer(session) })).status).toBe(200)
    }
  })
})

describe("WebSockets to a program inside", () => {
  test("open with a subprotocol and pass bytes both ways", async () => {
    const { head, socket } = await system.upgrade(`${base}/socket`, {
      headers: system.bearer(session),
      protocol: "tty, other",
    })
    expect(head).toMatch(/^HTTP\/1\.1 101 /)
    expect(head).toMatch(/sec-websocket-protocol: tty\r?$/im)
    expect(head).toContain("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    const sent = Buffer.alloc(3 * 1024 * 1024, "websocket")
    const got: Buffer[] = []
    socket.write(sent)
    let bytes = 0
    for await (const piece of socket as AsyncIterable<Buffer>) {
      got.push(piece)
      if ((bytes += piece.length) >= sent.length) break
    }
    expect(Buffer.concat(got).equals(sent)).toBe(true)
    socket.destroy()
  })

  test("that a browser opens carry its cookie and its own origin; the program sees the second alone", async () => {
    const { host, cookie, origin } = await system.browser(session)
    const { head, socket } = await system.upgrade("/socket", { host, headers: { cookie, origin } })
    expect(head).toMatch(/^HTTP\/1\.1 101 /)
    expect(head).toContain(`X-Seen-Origin: ${origin}`)
    const { gone = 0 } = await system.seen(session)
    socket.destroy()
    await vi.waitFor(async () => expect((await system.seen(session))["gone"]).toBeGreaterThan(gone), 10_000)
  })

  test("that lead to nobody, or to nothing inside, are told so", async () => {
    const status = async (path: string): Promise<number> => {
      const { head, socket } = await system.upgrade(path, { headers: system.bearer(session) })
      socket.destroy()
      return Number(head.split(" ")[1])
    }
    expect(await status(`/s/${session}/t/4000/`)).toBe(502)
    for (const path of ["/health", "/api/tunnels", base]) expect([path, await status(path)]).toEqual([path, 400])
  })

  test("that the program refuses are answered with what it says", async () => {
    const { head } = await system.upgrade(`${base}/no-socket`, { headers: system.bearer(session) })
    expect(head).toMatch(/^HTTP\/1\.1 403 /)
  })
})

describe("a program that does not answer", () => {
  test("because it is not there yet has a page that looks again by itself", async () => {
    const { status, body, headers } = await system.get(`/s/${session}/t/4000/`, {
      headers: { accept: "text/html", ...system.bearer(session) },
    })
    expect(status).toBe(502)
    expect(body).toContain("Nothing listens on port 4000 yet")
    expect(body).toContain('http-equiv="refresh"')
    expect(body).not.toMatch(/https?:/)
    expect(headers["content-security-policy"]).toContain("default-src 'none'")
    const plain = await system.get(`/s/${session}/t/4000/`, { headers: system.bearer(session) })
    expect(plain.body).toBe(
      "Nothing listens on port 4000 yet: nothing listens on that port yet (start the program; it may listen on loopback alone)\n",
    )
  })

  test("because it speaks something else is told apart", async () => {
    await system.ask.write(
      session,
      "/tmp/odd.cjs",
      'require("net").createServer((s) => s.on("error", () => s.destroy()).end("SSH-2.0-x\\r\\n")).listen(4001)',
    )
    await system.ask.call("process.spawn", { session, argv: ["node", "/tmp/odd.cjs"] })
    await system.ask.run(session, "until bash -c '< /dev/tcp/127.0.0.1/4001' 2>/dev/null; do sleep 0.02; done")
    const { status, body } = await system.get(`/s/${session}/t/4001/`, { headers: system.bearer(session) })
    expect([status, body]).toEqual([
      502,
      "The program did not answer: the program did not answer as a web server does\n",
    ])
  })

  test("because its session sleeps wakes it", async () => {
    const sleeper = await system.session()
    await system.ask.call("session.hibernate", { id: sleeper })
    // Its programs ended with it: what answers is the gateway, for a session that is awake again.
    const { status, headers } = await system.get(`/s/${sleeper}/t/${insidePort}/`, { headers: system.bearer(sleeper) })
    expect(status).toBe(502)
    expect(Number(headers["x-warren-woke-ms"])).toBeGreaterThanOrEqual(0)
    expect((await system.ask.call("session.get", { id: sleeper })).state).toBe("running")
    await system.serve(sleeper)
    await system.ask.call("session.pause", { id: sleeper })
    const again = await system.get(`/s/${sleeper}/t/${insidePort}/`, { headers: system.bearer(sleeper) })
    expect(again.status).toBe(200)
    expect(again.headers["x-warren-woke-ms"]).toMatch(/^\d+$/)
    await system.ask.call("session.delete", { id: sleeper })
    expect((await system.get(`/s/${sleeper}/t/${insidePort}/`, { headers: system.bearer(sleeper) })).status).toBe(404)
  })
})

test("notes who comes with a token, in a header or in a URL, and not each time again", async () => {
  const opened = async (work: () => Promise<unknown>): Promise<number> => {
    const before = system.notes.length
    await work()
    return system.notes.slice(before).filter(({ call }) => call === "gateway.open").length
  }
  const [host, other] = [system.ownHost(session, 5001), system.ownHost(session, 5002)]
  const headers = system.bearer(session)
  expect(await opened(() => system.get("/", { host, headers }))).toBe(1)
  expect(await opened(() => system.get("/", { host, headers }))).toBe(0)
  expect(await opened(() => system.get(`/?token=${system.token(session)}`, { host: other }))).toBe(1)
})

test("says that it is there, to anybody", async () => {
  expect(await system.get("/health")).toMatchObject({ status: 200, body: '{"status":"ok"}' })
})

async function begin(path: string): Promise<IncomingMessage> {
  const sent = httpRequest({
    ...{ socketPath: system.socket, path, agent: false },
    headers: { host: "localhost", ...system.bearer(session) },
  })
  sent.end()
  const [incoming] = (await once(sent, "response")) as [IncomingMessage]
  return incoming
}
