import { once } from "node:events"
import type { AddressInfo } from "node:net"
import { serve, type ServerType } from "@hono/node-server"
import { Fault } from "@warren/base/fault.ts"
import { streamTags, type StreamTag } from "@warren/base/frame.ts"
import { createLog } from "@warren/base/log.ts"
import { Hono } from "hono"
import { z } from "zod"
import { contract, type Context, type Handlers } from "../contract.ts"
import { Chunk, type Conversation } from "../conversation.ts"
import { answerFaults, routes } from "../http/routes.ts"
import { WebSockets } from "../http/web-socket.ts"

/** Streams over HTTP that do on demand what a test wants to see. */
export const streamTable = contract({
  "blob.read": {
    since: 1,
    http: "GET /v1/blobs/{name}",
    body: "bytes",
    size: { call: "blob.stat", field: "size" },
    doc: "The bytes.",
    in: z.object({ name: z.string(), offset: z.coerce.number().optional(), limit: z.coerce.number().optional() }),
    up: z.never(),
    down: z.never(),
  },
  "blob.stat": {
    since: 1,
    doc: "How many there are.",
    in: z.object({ name: z.string() }),
    out: z.object({ size: z.int() }),
  },
  "blob.write": {
    since: 1,
    http: "PUT /v1/blobs/{name}",
    body: "bytes",
    doc: "Keeps bytes.",
    in: z.object({ name: z.string(), bytesMax: z.coerce.number().default(1e9) }),
    up: z.object({ op: z.literal("eof") }),
    down: z.object({ ev: z.literal("written"), bytes: z.int() }),
  },
  "tool.run": {
    since: 1,
    http: "POST /v1/tools/{tool}/run",
    body: "result",
    doc: "Runs.",
    in: z.object({ tool: z.string(), stdin: z.boolean().default(false), times: z.int().default(1) }),
    up: z.discriminatedUnion("op", [
      z.object({ op: z.literal("eof") }),
      z.object({ op: z.literal("signal"), name: z.string() }),
    ]),
    down: z.discriminatedUnion("ev", [
      z.object({ ev: z.literal("started"), pid: z.int() }),
      z.object({ ev: z.literal("exit"), exitCode: z.int(), truncated: z.boolean() }),
    ]),
  },
})

type Up = { op: string; name?: string }
type Item = Chunk | object
const exit = (exitCode: number): object => ({ ev: "exit", exitCode, truncated: false })
const out = (text: string | Buffer, tag: StreamTag = streamTags.stdout): Chunk => new Chunk(tag, Buffer.from(text))

/** A conversation whose one end is a generator and whose other is a queue. */
class Talk implements Conversation<Up, never> {
  readonly #items: AsyncGenerator<Item, void, void>
  readonly #api: StreamApi
  #heard: (Buffer | Up)[] = []
  #wake: (() => void) | undefined

  constructor(api: StreamApi, signal: AbortSignal, say: (hear: () => Promise<Buffer | Up>) => AsyncGenerator<Item>) {
    this.#api = api
    signal.addEventListener("abort", () => {
      api.events.push("aborted")
      this.#wake?.()
    })
    this.#items = say(() => this.#hear(signal))
  }

  async next(): Promise<Chunk | undefined> {
    const { value } = await this.#items.next()
    return value as Chunk | undefined
  }

  send(message: Up): void {
    this.#heard.push(message)
    this.#wake?.()
  }

  async write(bytes: Uint8Array): Promise<void> {
    this.#api.taken += bytes.length
    this.#heard.push(Buffer.from(bytes))
    this.#wake?.()
    while (this.#api.isDeaf) await new Promise(setImmediate)
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#api.events.push("disposed")
    return Promise.resolve()
  }

  async #hear(signal: AbortSignal): Promise<Buffer | Up> {
    for (;;) {
      signal.throwIfAborted()
      const item = this.#heard.shift()
      if (item) return item
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }
}

export class StreamApi implements AsyncDisposable {
  readonly blobs = new Map<string, Buffer>()
  readonly events: string[] = []
  readonly logged: Record<string, unknown>[] = []
  readonly app = new Hono()
  readonly #sockets = new WebSockets()
  readonly #server: ServerType
  produced = 0
  taken = 0
  /** While it is, nothing that is written is taken. */
  isDeaf = false
  lastRequest: WeakRef<object> | undefined

  private constructor() {
    const log = createLog((line) => this.logged.push(JSON.parse(line) as Record<string, unknown>))
    this.app.use((c, next) => {
      this.lastRequest = new WeakRef(c)
      return next()
    })
    answerFaults(this.app, log)
    const caller = (request: Request): { name: string } => {
      if (request.headers.get("authorization") !== "me") throw new Fault("unauthenticated", "who are you?")
      return { name: "me" }
    }
    this.app.route("/", routes({ contract: streamTable, handlers: this.#handlers(), log, caller }))
    this.#server = serve({ fetch: this.app.fetch, port: 0, hostname: "127.0.0.1", websocket: this.#sockets })
    this.#sockets.guard(this.#server)
  }

  static async start(): Promise<StreamApi> {
    const api = new StreamApi()
    await once(api.#server, "listening")
    return api
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  fetch(path: string, init: Omit<RequestInit, "headers"> & { headers?: Record<string, string> } = {}) {
    const headers = { authorization: "me", ...init.headers }
    return fetch(`http://127.0.0.1:${this.port}${path}`, { ...init, headers })
  }

  run(tool: string, body: object = {}, headers: Record<string, string> = {}): Promise<Response> {
    return this.fetch(`/v1/tools/${tool}/run`, { method: "POST", body: JSON.stringify(body), headers })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, "close")
    this.#server.close()
    if ("closeAllConnections" in this.#server) this.#server.closeAllConnections()
    this.#sockets[Symbol.dispose]()
    await closed
  }

  #handlers(): Handlers<typeof streamTable> {
    const blob = (name: string): Buffer => {
      const bytes = this.blobs.get(name)
      if (!bytes) throw new Fault("not_found", `there is no ${name}`)
      return bytes
    }
    return {
      "blob.stat": async ({ name }) => ({ size: name === "liar" ? 100 : blob(name).length }),
      "blob.read": async ({ name, offset = 0, limit = Infinity }, { signal }) =>
        new Talk(this, signal, () => this.#read(name, () => blob(name), offset, limit)),
      "blob.write": async ({ name, bytesMax }, { signal }) =>
        new Talk(this, signal, (hear) => this.#write(name, bytesMax, hear)),
      "tool.run": (input, context) => this.#run(input, context),
    }
  }

  async *#read(name: string, blob: () => Buffer, offset: number, limit: number): AsyncGenerator<Item> {
    if (name === "endless") for (;;) yield await this.#more()
    if (name === "liar") yield out("short")
    else {
      const bytes = blob().subarray(offset, offset + limit)
      for (let at = 0; at < bytes.length; at += 10_000) yield out(bytes.subarray(at, at + 10_000), streamTags.raw)
    }
    if (name === "breaks") throw new Fault("unavailable", "gone")
  }

  async *#write(name: string, bytesMax: number, hear: () => Promise<Buffer | Up>): AsyncGenerator<Item> {
    const pieces: Buffer[] = []
    for (let item = await hear(); Buffer.isBuffer(item); item = await hear()) {
      pieces.push(item)
      if (this.taken > bytesMax) throw new Fault("limit", "the disk is full")
    }
    const bytes = Buffer.concat(pieces)
    this.blobs.set(name, bytes)
    yield { ev: "written", bytes: bytes.length }
  }

  async #run(input: { tool: string; stdin: boolean; times: number }, { signal }: Context): Promise<Talk> {
    if (input.tool === "missing") throw new Fault("not_found", "there is no such tool")
    return new Talk(this, signal, (hear) => this.#tool(input, hear))
  }

  async *#tool(
    { tool, stdin, times }: { tool: string; stdin: boolean; times: number },
    hear: () => Promise<Buffer | Up>,
  ): AsyncGenerator<Item> {
    yield { ev: "started", pid: 7 }
    if (tool === "flood") for (;;) yield await this.#more()
    if (tool === "wait") await hear()
    if (tool === "lies") yield { ev: 5 }
    if (tool === "breaks") throw new Fault("unavailable", "gone")
    if (tool === "words") yield* this.#words(times)
    if (tool === "big") for (let n = 0; n < times; n++) yield out("é".repeat(1_000))
    if (tool === "cat" && stdin) {
      for (let item = await hear(); ; item = await hear()) {
        if (Buffer.isBuffer(item)) yield out(item)
        else if (item.op === "eof") break
        else yield out(`<${item.name ?? ""}>`, streamTags.stderr)
      }
    }
    yield exit(times - 1)
  }

  /** Characters in two halves, a carriage return, and a byte that is none. */
  async *#words(times: number): AsyncGenerator<Item> {
    const euro = Buffer.from("€")
    for (let n = 0; n < times; n++) {
      yield out(euro.subarray(0, 1))
      yield out("warn\r\n", streamTags.stderr)
      yield out(euro.subarray(1))
    }
    yield out(Buffer.from([0xff]), streamTags.raw)
  }

  async #more(): Promise<Chunk> {
    await new Promise(setImmediate)
    this.produced += 64 * 1024
    return out(Buffer.alloc(64 * 1024, "x"))
  }
}

export async function served(work: (api: StreamApi) => Promise<void>): Promise<void> {
  await using api = await StreamApi.start()
  await work(api)
}

export async function errorOf(response: Response): Promise<Record<string, unknown>> {
  return ((await response.json()) as { error: Record<string, unknown> }).error
}
