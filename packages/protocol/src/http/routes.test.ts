import { once } from "node:events"
import { connect, type AddressInfo, type Server } from "node:net"
import { serve } from "@hono/node-server"
import { Fault } from "@warren/base/fault.ts"
import { createLog } from "@warren/base/log.ts"
import { eventually } from "@warren/base/testing/eventually.ts"
import { Hono } from "hono"
import { describe, expect, test } from "vitest"
import { z } from "zod"
import { contract, type Context, type Handlers } from "../contract.ts"
import { Journal } from "../journal.ts"
import { answerFaults, routes } from "./routes.ts"

const Seen = z.object({ id: z.string(), limit: z.number(), text: z.string(), caller: z.string() })
const input = z.object({
  id: z.string(),
  limit: z.coerce.number().int().max(10).default(5),
  text: z.string().default(""),
})

const table = contract({
  "thing.get": { since: 1, http: "GET /v1/things/{id}", doc: "", in: input, out: Seen },
  "thing.make": { since: 1, http: "POST /v1/things/{id}", doc: "", in: input, out: Seen },
  "thing.drop": { since: 1, http: "DELETE /v1/things/{id}", doc: "", in: input, out: Seen },
  "thing.wait": { since: 1, http: "GET /v1/wait", doc: "", in: z.object({}), out: z.object({}) },
  "thing.fail": { since: 1, http: "GET /v1/fail", doc: "", in: z.object({ kind: z.string() }), out: z.object({}) },
  "thing.hidden": { since: 1, doc: "", in: z.object({}), out: z.object({}) },
  "thing.follow": {
    since: 1,
    http: "GET /v1/follow",
    doc: "",
    in: z.object({ after: z.coerce.number().int().min(0).default(0) }),
    each: z.object({ n: z.number() }),
  },
  "thing.flood": { since: 1, http: "GET /v1/flood", doc: "", in: z.object({}), each: z.object({ fill: z.string() }) },
})

class Api {
  readonly events: string[] = []
  readonly logged: Record<string, unknown>[] = []
  readonly journal = new Journal<{ n: number }>(5)
  produced = 0
  readonly app = new Hono()

  constructor() {
    const log = createLog((line) => this.logged.push(JSON.parse(line) as Record<string, unknown>))
    answerFaults(this.app, log)
    const caller = (request: Request): { name: string } => {
      const name = request.headers.get("authorization")
      if (name === null) throw new Fault("unauthenticated", "who are you?")
      return { name }
    }
    this.app.route("/", routes({ contract: table, handlers: this.#handlers(), log, caller }))
  }

  get(path: string, init: Omit<RequestInit, "headers"> & { headers?: Record<string, string> } = {}): Promise<Response> {
    return Promise.resolve(this.app.request(path, { ...init, headers: { authorization: "me", ...init.headers } }))
  }

  post(body: string | Uint8Array | ReadableStream, path = "/v1/things/a"): Promise<Response> {
    return this.get(path, { method: "POST", body, duplex: "half" })
  }

  #handlers(): Handlers<typeof table> {
    const seen = (given: z.output<typeof input>, { caller }: Context) =>
      Promise.resolve({ ...given, caller: caller.name })
    const { events } = this
    return {
      "thing.get": seen,
      "thing.make": seen,
      "thing.drop": seen,
      "thing.wait": async (_, { signal }) => {
        events.push("started")
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }))
        events.push("aborted")
        throw signal.reason
      },
      "thing.fail": ({ kind }) => fail(kind),
      "thing.hidden": () => Promise.resolve({}),
      "thing.follow": ({ after }, { signal }) => this.#follow(after, signal),
      "thing.flood": (_, { signal }) => this.#flood(signal),
    }
  }

  async *#follow(after: number, signal: AbortSignal) {
    try {
      yield* this.journal.read(after, signal)
    } finally {
      this.events.push("follow over")
    }
  }

  async *#flood(signal: AbortSignal) {
    try {
      for (let seq = 1; !signal.aborted; seq++) {
        this.produced++
        yield { seq, item: { fill: "x".repeat(10_000) } }
      }
    } finally {
      this.events.push("flood over")
    }
  }
}

function fail(kind: string): Promise<never> {
  if (kind === "text") throw "password=hunter2"
  if (kind === "bug") throw new TypeError("password=hunter2")
  if (kind === "shape") return Promise.resolve(5) as unknown as Promise<never>
  return Promise.reject(
    new Fault("conflict", "taken", { hint: "use another", subject: "thing:1", cause: new Error("hunter2") }),
  )
}

const errorOf = async (response: Response): Promise<Record<string, unknown>> =>
  ((await response.json()) as { error: Record<string, unknown> }).error

/** The events of a stream so far: one object per event. */
const eventsIn = (text: string): Record<string, string>[] =>
  text
    .split("\n\n")
    .filter((block) => block.includes("data:"))
    .map((block) => Object.fromEntries(block.split("\n").map((line) => line.split(/: (.*)/s).slice(0, 2))))

describe("routes", () => {
  test("take their input from path and query, and fill in defaults", async () => {
    const api = new Api()
    const response = await api.get("/v1/things/a%20b?limit=7&unknown=1&__proto__=1")
    expect([response.status, await response.json()]).toEqual([200, { id: "a b", limit: 7, text: "", caller: "me" }])
    expect(await (await api.get("/v1/things/x?text=ü", { method: "DELETE" })).json()).toMatchObject({
      id: "x",
      limit: 5,
      text: "ü",
    })
  })

  test("take their input from the body, and the path wins", async () => {
    const api = new Api()
    const response = await api.post(JSON.stringify({ id: "other", limit: 2, text: "é" }))
    expect(await response.json()).toEqual({ id: "a", limit: 2, text: "é", caller: "me" })
    expect(await (await api.post("")).json()).toMatchObject({ id: "a", limit: 5 })
    const odd = await api.post('{"__proto__":{"text":"polluted"},"limit":1}')
    expect(await odd.json()).toEqual({ id: "a", limit: 1, text: "", caller: "me" })
  })

  test.each([
    ["a field that is wrong", "/v1/things/a?limit=11", "limit"],
    ["a field that is no number", "/v1/things/a?limit=x", "limit"],
    ["a field that is missing", "/v1/fail", "kind"],
  ])("refuse %s by name", async (_, path, field) => {
    const response = await new Api().get(path)
    expect(response.status).toBe(400)
    expect(await errorOf(response)).toMatchObject({
      code: "invalid",
      message: expect.stringContaining(field),
      requestId: response.headers.get("x-request-id"),
    })
  })

  test.each([
    ["broken JSON", "{"],
    ["a list", "[1]"],
    ["null", "null"],
    ["a text", '"x"'],
    ["JSON in Latin-1", Buffer.from('{"text":"é"}', "latin1")],
    ["UTF-8 that is cut off", new Uint8Array([0x7b, 0x22, 0xc3])],
    ["100,000 brackets", "[".repeat(100_000)],
    ["half a character", String.raw`{"text":"\ud83d"}`],
    ["the other half, as a name", String.raw`{"limit":1,"\uDE00":{"text":["x"]}}`],
  ])("refuse a body that is %s", async (_, body) => {
    const response = await new Api().post(body)
    expect([response.status, (await errorOf(response))["code"]]).toEqual([400, "invalid"])
  })

  test("take a body as long as the limit, and not one byte longer, whatever its length claims to be", async () => {
    const api = new Api()
    const body = (bytes: number): string => JSON.stringify({ text: "x".repeat(bytes - '{"text":""}'.length) })
    expect((await api.post(body(1024 * 1024))).status).toBe(200)
    const refused = await api.post(body(1024 * 1024 + 1))
    expect([refused.status, (await errorOf(refused))["code"]]).toEqual([429, "limit"])
    let pulled = 0
    const endless = new ReadableStream({
      pull: (controller) => (pulled++, controller.enqueue(new Uint8Array(64 * 1024).fill(32))),
    })
    expect((await api.post(endless)).status).toBe(429)
    expect(pulled).toBeLessThan(40)
  })

  test("a character that is cut between two chunks of a body stays whole", async () => {
    const bytes = Buffer.from('{"text":"😀"}')
    const chunks = [...bytes].map((byte) => new Uint8Array([byte]))
    const body = new ReadableStream({
      pull: (controller) => {
        const next = chunks.shift()
        if (next) controller.enqueue(next)
        else controller.close()
      },
    })
    expect(await (await new Api().post(body)).json()).toMatchObject({ text: "😀" })
    const escaped = String.raw`{"text":"\ud83d\ude00 and \\ud83d"}`
    expect(await (await new Api().post(escaped)).json()).toMatchObject({ text: String.raw`😀 and \ud83d` })
  })

  test("ask who it is before anything is read", async () => {
    const api = new Api()
    const response = await Promise.resolve(api.app.request("/v1/things/a?limit=99"))
    expect([response.status, (await errorOf(response))["code"]]).toEqual([401, "unauthenticated"])
  })

  test.each([
    ["GET", "/nowhere"],
    ["GET", "/v1/things"],
    ["PUT", "/v1/things/a"],
    ["POST", "/v1/thing.hidden"],
  ])("answer %s %s, which is not there, with a typed error", async (method, path) => {
    const response = await new Api().get(path, { method })
    expect([response.status, await errorOf(response)]).toMatchObject([
      404,
      { code: "not_found", message: `there is no ${method} ${path}` },
    ])
  })

  test("tell a fault with its status, without its cause", async () => {
    const response = await new Api().get("/v1/fail?kind=fault")
    const error = await errorOf(response)
    expect(response.status).toBe(409)
    expect(error).toEqual({
      code: "conflict",
      message: "taken",
      hint: "use another",
      subject: "thing:1",
      requestId: expect.stringMatching(/^req_/),
    })
  })

  test.each(["bug", "text", "shape"])("tell a bug (%s) as `internal` without its words, and log it", async (kind) => {
    const api = new Api()
    const response = await api.get(`/v1/fail?kind=${kind}`)
    const text = await response.text()
    expect([response.status, JSON.parse(text)]).toMatchObject([500, { error: { code: "internal" } }])
    expect(text).not.toContain("hunter2")
    expect(api.logged).toMatchObject([{ level: "error", event: "http.bug", path: "/v1/fail" }])
    if (kind !== "shape") expect(api.logged[0]?.["message"]).toBe("password=hunter2")
  })

  test("stream a feed as events with their numbers, from where the reader was", async () => {
    const api = new Api()
    for (let n = 1; n <= 4; n++) api.journal.append({ n })
    const read = async (
      path: string,
      headers: Record<string, string>,
      count: number,
    ): Promise<Record<string, string>[]> => {
      const controller = new AbortController()
      const response = await api.get(path, { headers, signal: controller.signal })
      expect(response.headers.get("content-type")).toContain("text/event-stream")
      let text = ""
      const decoder = new TextDecoder()
      for await (const chunk of response.body ?? []) {
        text += decoder.decode(chunk as Uint8Array, { stream: true })
        if (eventsIn(text).length >= count) break
      }
      controller.abort()
      return eventsIn(text)
    }
    expect(await read("/v1/follow?after=2", {}, 2)).toEqual([
      { id: "3", event: "item", data: '{"n":3}' },
      { id: "4", event: "item", data: '{"n":4}' },
    ])
    expect((await read("/v1/follow?after=0", { "last-event-id": "3" }, 1)).map(({ id }) => id)).toEqual(["4"])
    for (let n = 5; n <= 30; n++) api.journal.append({ n })
    const [lost] = await read("/v1/follow?after=1", {}, 1)
    expect([lost?.["event"], JSON.parse(lost?.["data"] ?? "{}")]).toMatchObject([
      "fault",
      { code: "resync", hint: expect.stringContaining("after 30") },
    ])
    const refused = await api.get("/v1/follow", { headers: { "last-event-id": "x" } })
    expect([refused.status, (await errorOf(refused))["code"]]).toEqual([400, "invalid"])
  })
})

describe("routes on a real server", () => {
  async function served(work: (api: Api, port: number) => Promise<void>): Promise<void> {
    const api = new Api()
    const server = serve({ fetch: api.app.fetch, port: 0, hostname: "127.0.0.1" })
    await once(server, "listening")
    try {
      await work(api, (server.address() as AddressInfo).port)
    } finally {
      const closed = once(server, "close")
      ;(server as Server).close()
      if ("closeAllConnections" in server) server.closeAllConnections()
      await closed
    }
  }
  const request = (
    port: number,
    path: string,
    init: Omit<RequestInit, "headers"> & { headers?: Record<string, string> } = {},
  ): Promise<Response> =>
    fetch(`http://127.0.0.1:${port}${path}`, { ...init, headers: { authorization: "me", ...init.headers } })

  test("answer calls, refuse bad bodies, and tell what is not there", () =>
    served(async (_, port) => {
      expect(await (await request(port, "/v1/things/a?limit=3")).json()).toMatchObject({ id: "a", limit: 3 })
      expect((await request(port, "/v1/things/a", { method: "POST", body: "{" })).status).toBe(400)
      expect((await request(port, "/v1/things/a", { method: "POST", body: new Uint8Array([0xff]) })).status).toBe(400)
      expect((await request(port, "/nowhere")).status).toBe(404)
      expect((await request(port, "/v1/fail?kind=bug")).status).toBe(500)
      expect((await request(port, "/v1/fail?kind=text")).status).toBe(500)
    }))

  test("refuse a body over the limit that claims no length, and are still there", () =>
    served(async (_, port) => {
      const socket = connect(port, "127.0.0.1")
      socket.on("error", () => undefined)
      socket.write("POST /v1/things/a HTTP/1.1\r\nhost: x\r\nauthorization: me\r\ntransfer-encoding: chunked\r\n\r\n")
      let answer = ""
      socket.on("data", (chunk: Buffer) => (answer += chunk.toString()))
      const piece = `10000\r\n${" ".repeat(0x10000)}\r\n`
      for (let n = 0; n < 17 && socket.writable; n++) socket.write(piece)
      await eventually(() => answer.includes("\r\n\r\n") || socket.destroyed)
      expect(answer).toMatch(/^HTTP\/1\.1 429 /)
      socket.destroy()
      expect((await request(port, "/v1/things/a")).status).toBe(200)
    }))

  test("a client that goes away in the middle of its body is no bug", () =>
    served(async (api, port) => {
      const socket = connect(port, "127.0.0.1").on("error", () => undefined)
      socket.write(`POST /v1/things/a HTTP/1.1\r\nhost: x\r\nauthorization: me\r\ncontent-length: 100\r\n\r\n{"text":`)
      // Whoever answers this has seen that.
      await request(port, "/v1/things/a")
      socket.destroy()
      for (let n = 0; n < 3; n++) await request(port, "/v1/things/a")
      expect(api.logged).toEqual([])
    }))

  test("a client that goes away aborts the call's signal", () =>
    served(async (api, port) => {
      const controller = new AbortController()
      const work = request(port, "/v1/wait", { signal: controller.signal }).catch(() => "gone")
      await eventually(() => api.events.includes("started"))
      controller.abort()
      expect(await work).toBe("gone")
      await eventually(() => api.events.includes("aborted"))
      expect(api.logged).toEqual([])
    }))

  test("a reader that goes away ends the feed", () =>
    served(async (api, port) => {
      const controller = new AbortController()
      const response = await request(port, "/v1/flood", { signal: controller.signal })
      await response.body?.getReader().read()
      controller.abort()
      await eventually(() => api.events.includes("flood over"))
      expect(api.logged).toEqual([])
    }))

  test("a reader that goes away while nothing happens ends the feed, and is no bug", () =>
    served(async (api, port) => {
      const controller = new AbortController()
      api.journal.append({ n: 1 })
      const response = await request(port, "/v1/follow", { signal: controller.signal })
      await response.body?.getReader().read()
      controller.abort()
      await eventually(() => api.events.includes("follow over"))
      await new Promise(setImmediate)
      expect(api.logged).toEqual([])
    }))

  test("a reader that does not read holds back the feed, and nothing grows", () =>
    served(async (api, port) => {
      const socket = connect(port, "127.0.0.1")
      socket.pause()
      socket.write("GET /v1/flood HTTP/1.1\r\nhost: x\r\nauthorization: me\r\n\r\n")
      await eventually(() => api.produced > 0)
      let last = -1
      for (let same = 0; same < 200; same++) {
        await new Promise(setImmediate)
        if (api.produced !== last) same = 0
        last = api.produced
      }
      // The kernel's buffers hold some megabytes; a feed without an end that has stopped within them is held back.
      expect(api.produced * 10_000).toBeLessThan(64 * 1024 * 1024)
      expect(api.events).toEqual([])
      socket.destroy()
      await eventually(() => api.events.includes("flood over"))
    }))

  test("a reader that comes back with Last-Event-ID misses nothing and sees nothing twice", () =>
    served(async (api, port) => {
      const seen: number[] = []
      for (let n = 1; n <= 4; n++) api.journal.append({ n })
      while (seen.length < 4) {
        const controller = new AbortController()
        const headers = seen.length === 0 ? {} : { "last-event-id": String(seen.at(-1)) }
        const response = await request(port, "/v1/follow", { headers, signal: controller.signal })
        const reader = response.body?.getReader()
        const { value } = (await reader?.read()) ?? {}
        for (const { id } of eventsIn(new TextDecoder().decode(value)).slice(0, 1)) seen.push(Number(id))
        controller.abort()
      }
      expect(seen).toEqual([1, 2, 3, 4])
    }))
})
