import { execFile } from "node:child_process"
import { EventEmitter, once } from "node:events"
import { readFile } from "node:fs/promises"
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from "node:http"
import { promisify } from "node:util"
import { eventually } from "@warren/base/testing/eventually.ts"
import { describe, expect, test } from "vitest"
import { Loopback } from "../egress/testing/egress-system.ts"
import type { LeaseScope } from "./lease.ts"
import { brokerEnvironment } from "./broker-environment.ts"
import { BrokerSystem, realKey } from "./testing/broker-system.ts"

const run = promisify(execFile)
const hour = 3_600_000

interface Seen {
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** Answers like an LLM: with events for who wants a stream, otherwise at once. */
function scriptedLlm(seen: Seen[], turns = new EventEmitter()): Promise<Loopback> {
  return Loopback.http((request, response) => {
    void (async () => {
      let body = ""
      for await (const chunk of request) body += String(chunk)
      seen.push({ url: request.url ?? "", headers: request.headers, body })
      if (!body.includes('"stream":true'))
        return response.writeHead(200, { "content-type": "application/json" }).end('{"ok":true}')
      response.writeHead(200, { "content-type": "text/event-stream" })
      for (const word of ["one", "two"]) {
        response.write(`event: delta\ndata: {"text":"${word}"}\n\n`)
        // The next word comes only when somebody has asked for it: each is seen by itself.
        await once(turns, "next")
      }
      return response.end("data: [DONE]\n\n")
    })()
  })
}

async function ask(
  port: number,
  path: string,
  headers: Record<string, string>,
  body = "{}",
): Promise<{ status: number; text: string; headers: IncomingHttpHeaders }> {
  const sent = httpRequest({
    host: "127.0.0.1",
    port,
    path,
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
  })
  sent.end(body)
  const [incoming] = (await once(sent, "response")) as [IncomingMessage]
  let text = ""
  for await (const chunk of incoming) text += String(chunk)
  return { status: incoming.statusCode ?? 0, text: text + JSON.stringify(incoming.headers), headers: incoming.headers }
}

describe("the broker", () => {
  test("an LLM receives the real key, and nothing that the client sees holds it", async () => {
    const seen: Seen[] = []
    await using llm = await scriptedLlm(seen)
    const upstream = `http://127.0.0.1:${llm.port}`
    await using system = await BrokerSystem.start({
      upstreams: { anthropic: upstream, openai: `${upstream}/compatible/` },
    })
    const port = await system.sandbox("ses_one")
    const destination = `127.0.0.1:${llm.port}`
    const grant = (scope: LeaseScope) => system.leases.grant({ session: "ses_one", scope, destination, ttlMs: hour })
    const [anthropic, openai] = [grant("llm:anthropic"), grant("llm:openai")]
    const first = await ask(port, "/anthropic/v1/messages?beta=true", {
      "x-api-key": anthropic.token,
      cookie: "a=b",
      "x-forwarded-for": "1.2.3.4",
      "x-warren-scheme": "https",
      "api-key": "mine",
      "proxy-authorization": "Basic bWluZQ==",
      via: "1.1 somebody",
      forwarded: "for=1.2.3.4",
      "anthropic-version": "2023-06-01",
    })
    const second = await ask(
      port,
      "/openai/v1/chat/completions",
      { authorization: `Bearer ${openai.token}` },
      '{"model":"m"}',
    )
    const bearer = await ask(port, "/anthropic/v1/messages", { authorization: `Bearer ${anthropic.token}` })
    expect([first.status, second.status, bearer.status]).toEqual([200, 200, 200])
    expect(seen.map(({ url }) => url)).toEqual([
      "/v1/messages?beta=true",
      "/compatible/v1/chat/completions",
      "/v1/messages",
    ])
    expect(seen[0]?.headers).toMatchObject({
      "x-api-key": realKey,
      host: destination,
      "anthropic-version": "2023-06-01",
    })
    for (const name of [
      "cookie",
      "api-key",
      "proxy-authorization",
      "x-forwarded-for",
      "x-warren-scheme",
      "via",
      "forwarded",
    ])
      expect(seen[0]?.headers).not.toHaveProperty(name)
    expect(seen[1]?.headers.authorization).toBe(`Bearer ${realKey}`)
    expect(seen[1]?.body).toBe('{"model":"m"}')
    expect(JSON.stringify(seen)).not.toContain("lease_")
    for (const one of [first, second, bearer]) expect(one.text).not.toContain(realKey)
    const { stdout } = await run("curl", [
      "-sS",
      "-x",
      `http://127.0.0.1:${port}`,
      "-H",
      `x-api-key: ${anthropic.token}`,
      "http://broker.warren/anthropic/v1/models",
    ])
    expect(stdout).toBe('{"ok":true}')
    await eventually(() => system.lines.length === 4)
    expect(JSON.parse(system.lines[0] ?? "")).toMatchObject({
      event: "broker.use",
      session: "ses_one",
      lease: anthropic.id,
      scope: "llm:anthropic",
      destination,
      status: 200,
      sentBytes: 2,
      receivedBytes: 11,
    })
    expect(system.broker.uses.tail(10)).toHaveLength(4)
  })

  test("events pass one by one, untouched", async () => {
    const turns = new EventEmitter()
    await using llm = await scriptedLlm([], turns)
    await using system = await BrokerSystem.start({ upstreams: { anthropic: `http://127.0.0.1:${llm.port}` } })
    const port = await system.sandbox("ses_one")
    const { token } = system.leases.grant({
      session: "ses_one",
      scope: "llm:anthropic",
      destination: `127.0.0.1:${llm.port}`,
      ttlMs: hour,
    })
    const sent = httpRequest({
      host: "127.0.0.1",
      port,
      path: "/anthropic/v1/messages",
      method: "POST",
      headers: { "x-api-key": token },
    })
    sent.end('{"stream":true}')
    const [incoming] = (await once(sent, "response")) as [IncomingMessage]
    const events: string[] = []
    for await (const chunk of incoming) {
      events.push(String(chunk))
      turns.emit("next")
    }
    expect(events).toEqual([
      'event: delta\ndata: {"text":"one"}\n\n',
      'event: delta\ndata: {"text":"two"}\n\n',
      "data: [DONE]\n\n",
    ])
  })

  test("what is not allowed is refused and logged, and never leaves", async () => {
    const seen: Seen[] = []
    await using llm = await scriptedLlm(seen)
    const upstream = `http://127.0.0.1:${llm.port}`
    await using system = await BrokerSystem.start({ upstreams: { anthropic: upstream, openai: upstream } })
    const [mine, other] = [await system.sandbox("ses_one"), await system.sandbox("ses_two")]
    const destination = `127.0.0.1:${llm.port}`
    const grant = (more: object = {}): string =>
      system.leases.grant({ session: "ses_one", scope: "llm:anthropic", destination, ttlMs: hour, ...more }).token
    const good = grant()
    const revoked = system.leases.grant({ session: "ses_one", scope: "llm:anthropic", destination, ttlMs: hour })
    expect(system.leases.revoke(revoked.id)).toBe(true)
    expect(system.leases.revoke(revoked.id)).toBe(false)
    const short = grant({ ttlMs: 1_000 })
    await system.clock.advance(1_000)
    const elsewhere = grant({ destination: "api.anthropic.com" })
    const path = "/anthropic/v1/messages"
    const cases: [number, string, Record<string, string>, number, string | undefined][] = [
      [mine, path, {}, 401, "no-lease"],
      [mine, path, { "x-api-key": "nonsense" }, 401, "unknown"],
      [mine, path, { "x-api-key": `lease_${"a".repeat(43)}` }, 401, "unknown"],
      [mine, path, { "x-api-key": realKey }, 401, "unknown"],
      [mine, path, { "x-api-key": revoked.token }, 401, "revoked"],
      [mine, path, { "x-api-key": short }, 401, "expired"],
      [other, path, { "x-api-key": good }, 401, "other-session"],
      [mine, "/openai/v1/chat/completions", { authorization: `Bearer ${good}` }, 403, "other-scope"],
      [mine, path, { "x-api-key": elsewhere }, 403, "other-destination"],
      [mine, "/anthropic/../openai/v1/x", { "x-api-key": good }, 400, undefined],
      [mine, "/anthropic/v1/%2e%2e/x", { "x-api-key": good }, 400, undefined],
      [mine, "/anthropic/v1//x", { "x-api-key": good }, 400, undefined],
      [mine, "/anthropic/admin", { "x-api-key": good }, 404, undefined],
      [mine, "/anthropic@evil.test/v1/x", { "x-api-key": good }, 404, undefined],
      [mine, "/other/v1/x", { "x-api-key": good }, 404, undefined],
    ]
    for (const [index, [port, url, headers, status, refusal]] of cases.entries()) {
      const answer = await ask(port, url, headers)
      expect(answer.status, `${url} ${refusal}`).toBe(status)
      await eventually(() => system.lines.length > index)
      expect(JSON.parse(system.lines[index] ?? ""), url).toMatchObject({
        event: "broker.refuse",
        status,
        ...(refusal ? { refusal } : {}),
      })
    }
    expect(seen).toEqual([])
    expect((await ask(mine, path, { "x-api-key": good })).status).toBe(200)
    expect(system.leases.revokeSession("ses_one")).toBe(3)
    expect((await ask(mine, path, { "x-api-key": good })).status).toBe(401)
    expect(system.lines.join("")).not.toMatch(/lease_|sk-real/)
  })

  test("a key that a destination says back, or a keeper that blurts it out, stays here", async () => {
    const forItself = ["set-cookie", "www-authenticate", "alt-svc", "strict-transport-security"]
    const echo = `you sent ${realKey} and ${Buffer.from(realKey).toString("base64")}!`
    await using llm = await Loopback.http((request, response) => {
      response.setHeader("x-echo", request.headers["x-api-key"] ?? "")
      for (const name of forItself) response.setHeader(name, "a=b")
      // Cut in the middle of the key.
      response.write(echo.slice(0, 20))
      setImmediate(() => response.end(echo.slice(20)))
    })
    const keys = [() => Promise.resolve({ value: realKey }), () => Promise.reject(new Error(`cannot read ${realKey}`))]
    await using system = await BrokerSystem.start({
      upstreams: { anthropic: `http://127.0.0.1:${llm.port}` },
      keys: () => (keys.shift() ?? (() => Promise.reject(new Error("none"))))(),
    })
    const port = await system.sandbox("ses_one")
    const { token } = system.leases.grant({
      session: "ses_one",
      scope: "llm:anthropic",
      destination: `127.0.0.1:${llm.port}`,
      ttlMs: hour,
    })
    const answer = await ask(port, "/anthropic/v1/messages", { "x-api-key": token })
    expect(answer.text).toMatch(/^you sent \*{30} and \*{40}!/)
    for (const name of forItself) expect(answer.headers).not.toHaveProperty(name)
    const failed = await ask(port, "/anthropic/v1/messages", { "x-api-key": token })
    expect(failed.status).toBe(503)
    expect(answer.text + failed.text + system.lines.join("")).not.toContain(realKey)
  })

  test("a redirect stays with the destination, or is refused", async () => {
    let location = ""
    await using llm = await Loopback.http((_, response) => void response.writeHead(307, { location }).end())
    const upstream = `http://127.0.0.1:${llm.port}`
    await using system = await BrokerSystem.start({
      upstreams: { anthropic: upstream, openai: `${upstream}/compatible/` },
    })
    const port = await system.sandbox("ses_one")
    const grant = (scope: LeaseScope): string =>
      system.leases.grant({ session: "ses_one", scope, destination: `127.0.0.1:${llm.port}`, ttlMs: hour }).token
    const token = grant("llm:anthropic")
    for (const [to, expected] of [
      ["/v1/other?x", "/anthropic/v1/other?x"],
      [`${upstream}/v1/x`, "/anthropic/v1/x"],
      ["https://evil.test/v1/x", undefined],
      ["//evil.test/v1", undefined],
      [`http://user:pw@127.0.0.1:${llm.port}/v1`, undefined],
      [`http://user@127.0.0.1:${llm.port}/v1`, undefined],
      [`http://:pw@127.0.0.1:${llm.port}/v1`, undefined],
      ["http://[", undefined],
    ] as const) {
      location = to
      const answer = await ask(port, "/anthropic/v1/messages", { "x-api-key": token })
      expect(answer.status, to).toBe(expected ? 307 : 403)
      expect(answer.headers.location, to).toBe(expected)
    }
    // A destination may be a part of a host: the rest of it is elsewhere.
    const other = { authorization: `Bearer ${grant("llm:openai")}` }
    for (const [to, expected] of [
      ["/compatible/v1/x", "/openai/v1/x"],
      ["x?y", "/openai/v1/x?y"],
      ["/compatibleX/v1/x", undefined],
      ["/v1/x", undefined],
      ["../../v1/x", undefined],
    ] as const) {
      location = to
      expect((await ask(port, "/openai/v1/chat", other)).headers.location, to).toBe(expected)
    }
  })

  test("a client that leaves takes its request with it; a destination that is gone is a clear answer", async () => {
    const llm = await Loopback.http(() => undefined)
    await using system = await BrokerSystem.start({ upstreams: { anthropic: `http://127.0.0.1:${llm.port}` } })
    const port = await system.sandbox("ses_one")
    const { token } = system.leases.grant({
      session: "ses_one",
      scope: "llm:anthropic",
      destination: `127.0.0.1:${llm.port}`,
      ttlMs: hour,
    })
    const sent = httpRequest({
      host: "127.0.0.1",
      port,
      path: "/anthropic/v1/messages",
      method: "POST",
      headers: { "x-api-key": token },
    })
    sent.on("error", () => undefined).end("{}")
    await eventually(() => llm.open === 1)
    sent.destroy()
    await eventually(() => llm.open === 0)
    await llm[Symbol.asyncDispose]()
    expect(await ask(port, "/anthropic/v1/messages", { "x-api-key": token })).toMatchObject({ status: 503 })
  })

  test("the database holds neither lease nor key in clear", async () => {
    await using llm = await scriptedLlm([])
    await using system = await BrokerSystem.start({ upstreams: { anthropic: `http://127.0.0.1:${llm.port}` } })
    const port = await system.sandbox("ses_one")
    const { token } = system.leases.grant({
      session: "ses_one",
      scope: "llm:anthropic",
      destination: `127.0.0.1:${llm.port}`,
      ttlMs: hour,
    })
    expect((await ask(port, "/anthropic/v1/messages", { "x-api-key": token })).status).toBe(200)
    const secret = token.slice("lease_".length)
    const names = (await system.folder.names()).filter((name) => name.startsWith("runner.db"))
    expect(names).toContain("runner.db-wal")
    for (const name of names) {
      const bytes = await readFile(system.folder.at(name))
      for (const text of [secret, realKey]) {
        expect(bytes.includes(text)).toBe(false)
        expect(bytes.includes(Buffer.from(text, "base64url"))).toBe(false)
      }
    }
    expect(Object.values(brokerEnvironment([{ scope: "llm:anthropic", destination: "a", token }]))).toEqual([
      "http://127.0.0.1:3128/anthropic",
      token,
    ])
  })
})
