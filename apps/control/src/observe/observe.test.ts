import { once } from "node:events"
import { createServer, request, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import { systemClock } from "@warren/base/clock.ts"
import { createLog, silentLog } from "@warren/base/log.ts"
import { describe, expect, test } from "vitest"
import { drain } from "../drain.ts"
import { sessionId } from "../testing/test-runner.ts"
import { TestControl } from "../testing/test-control.ts"
import { parseTraceparent, traceLimits, Traces } from "./traces.ts"

describe("metrics", () => {
  test("count requests by call and status, in Prometheus' form, and nothing about anybody", async () => {
    await using system = await TestControl.open()
    const token = await system.ownerToken()
    await system.ask(`/v1/sessions/${sessionId}`, { token })
    await system.ask("/v1/sessions/canary", { token })
    await system.ask("/canary", { token })
    const { body, headers } = await system.ask("/metrics", { token })
    expect(headers.get("content-type")).toContain("version=0.0.4")
    expect(body).toContain('warren_request_seconds_count{call="session.get",status="200"} 1')
    expect(body).toContain('warren_request_seconds_count{call="session.get",status="404"} 1')
    expect(body).toContain('warren_request_seconds_bucket{call="other",status="404",le="+Inf"} 1')
    expect(body).toContain("warren_requests_in_flight 1")
    expect(body).not.toContain("canary")
    for (const line of (body as string).trim().split("\n")) {
      expect(line).toMatch(/^(# (HELP|TYPE) \w+ .+|\w+(\{(\w+="[^"]*",?)+\})? [\d.e+-]+)$/)
    }
  })
})

describe("requests", () => {
  test("have an id that the answer, the error and the audit log share", async () => {
    await using system = await TestControl.open()
    const { headers, body } = await system.ask("/v1/users", { token: await system.token(["exec"]) })
    const id = headers.get("x-request-id")
    expect(id).toMatch(/^req_[\da-f]{20}$/)
    expect(body.error.requestId).toBe(id)
    expect((await system.audit()).at(-1)).toMatchObject({ action: "user.list", request: id })
  })
})

/** An OpenTelemetry collector that keeps what it is sent. */
async function collector(status = 200) {
  const received: { path: string; body: any }[] = [] // oxlint-disable-line typescript/no-explicit-any -- as it came
  const server = createServer((asked, answer) => {
    let text = ""
    asked.on("data", (chunk: Buffer) => (text += chunk.toString()))
    asked.on("end", () => {
      received.push({ path: asked.url ?? "", body: JSON.parse(text) })
      answer.writeHead(status).end("{}")
    })
  }).listen(0, "127.0.0.1")
  await once(server, "listening")
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, received, close: () => server.close() }
}

describe("traces", () => {
  test("go to a collector, as part of the caller's trace", async () => {
    const { url, received, close } = await collector()
    const traces = new Traces(`${url}/`, silentLog)
    await using system = await TestControl.open({ traces })
    const traceId = "0af7651916cd43dd8448eb211c80319c"
    const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01` }
    const answer = await system.ask(`/v1/sessions/${sessionId}`, { token: await system.ownerToken(), headers })
    expect(answer.headers.get("traceparent")).toMatch(new RegExp(`^00-${traceId}-[\\da-f]{16}-01$`))
    await traces[Symbol.asyncDispose]()
    expect(received[0]?.path).toBe("/v1/traces")
    const span = received[0]?.body.resourceSpans[0].scopeSpans[0].spans[0]
    expect(span).toMatchObject({ traceId, parentSpanId: "b7ad6b7169203331", name: "session.get", kind: 2 })
    expect(Number(span.startTimeUnixNano)).toBe(system.clock.now() * 1e6)
    close()
  })

  test("a collector that fails, or is away, costs spans and nothing else", async () => {
    const lines: string[] = []
    const log = createLog((line) => lines.push(line))
    const { url, close } = await collector(500)
    const failing = new Traces(url, log)
    const away = new Traces("http://127.0.0.1:1", log)
    const span = { traceId: "a", spanId: "b", parentId: undefined, name: "x", startMs: 1, endMs: 2, status: 200 }
    failing.add(span)
    for (let n = 0; n < traceLimits.waitingMax + 5; n++) away.add(span)
    expect(away.dropped).toBe(5)
    await failing[Symbol.asyncDispose]()
    await away[Symbol.asyncDispose]()
    expect([failing.dropped, away.dropped]).toEqual([1, 5 + 2 * traceLimits.perSend])
    expect(lines.join("")).toContain("the collector answered 500")
    close()
  })

  test.each([
    ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", true],
    ["01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", true],
    ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", false],
    ["ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false],
    ["00-00000000000000000000000000000000-b7ad6b7169203331-01", false],
    ["00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", false],
    ["00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", false],
    ["nonsense", false],
  ])("%s is a traceparent: %s", (header, isOne) => {
    expect(parseTraceparent(header) !== undefined).toBe(isOne)
  })
})

const get = async (url: string, path: string, token: string): Promise<IncomingMessage> => {
  const headers = { host: "localhost:7777", authorization: `Bearer ${token}` }
  const [answer] = (await once(request(`${url}${path}`, { headers }).end(), "response")) as [IncomingMessage]
  return answer
}

describe("stopping", () => {
  test("feeds are ended with a reason, and then everything is: nothing has to be cut", async () => {
    await using system = await TestControl.open()
    const { server, url } = await system.listen()
    const token = await system.ownerToken()
    const feed = await get(url, "/v1/sessions/events", token)
    let text = ""
    feed.on("data", (chunk: Buffer) => (text += chunk.toString()))
    await once(feed, "data")
    system.control.watch.endFeeds()
    const ended = once(feed, "end")
    expect(await drain(server, 10_000, systemClock)).toBe(true)
    await ended
    expect(text).toContain("Warren is stopping")
    await expect(get(url, "/health", token)).rejects.toThrow("ECONNREFUSED")
  })

  test("what does not end in time is left to be cut", async () => {
    await using system = await TestControl.open()
    const { server, url } = await system.listen()
    const feed = await get(url, "/v1/sessions/events", await system.ownerToken())
    feed.resume()
    feed.on("error", () => undefined)
    expect(await drain(server, 1, systemClock)).toBe(false)
    const closed = once(server, "close")
    server.closeAllConnections()
    await closed
  })

  test("whoever balances load is told", async () => {
    await using system = await TestControl.open()
    expect((await system.ask("/health")).body.status).toBe("ok")
    system.isStopping = true
    const { status, body } = await system.ask("/health")
    expect([status, body.status]).toEqual([503, "stopping"])
  })
})
