import { once } from "node:events"
import type { AddressInfo } from "node:net"
import { serve } from "@hono/node-server"
import { Fault } from "@warren/base/fault.ts"
import { createLog } from "@warren/base/log.ts"
import { collected } from "@warren/base/testing/collected.ts"
import { eventually } from "@warren/base/testing/eventually.ts"
import { Hono } from "hono"
import { expect, test } from "vitest"
import { WebSocket } from "ws"
import { z } from "zod"
import { contract } from "../contract.ts"
import { Journal } from "../journal.ts"
import { answerFaults, routes } from "./routes.ts"
import { WebSockets } from "./web-socket.ts"

const table = contract({
  "news.follow": {
    since: 1,
    http: "GET /v1/news/{paper}/follow",
    doc: "News.",
    in: z.object({ paper: z.string(), after: z.coerce.number().int().min(0).default(0) }),
    each: z.object({ line: z.string() }),
  },
})

/** A feed at a real port. */
class News implements AsyncDisposable {
  readonly journal = new Journal<{ line: string }>(4)
  readonly asked: unknown[] = []
  readers = 0
  lastRequest: WeakRef<object> | undefined
  readonly #server: ReturnType<typeof serve>
  readonly #sockets = new WebSockets()

  private constructor() {
    const app = new Hono()
    app.use((c, next) => {
      c.set("requestId" as never, "req_news" as never)
      this.lastRequest = new WeakRef(c)
      return next()
    })
    const log = createLog(() => undefined)
    answerFaults(app, log)
    const handlers = {
      "news.follow": (input: { paper: string; after: number }, { signal }: { signal: AbortSignal }) =>
        this.#read(input, signal),
    }
    app.route("/", routes({ contract: table, handlers, log, caller: () => ({ name: "olga" }) }))
    this.#server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1", websocket: this.#sockets })
    this.#sockets.guard(this.#server)
  }

  static async open(): Promise<News> {
    const news = new News()
    await once(news.#server, "listening")
    return news
  }

  socket(path: string): WebSocket {
    const { port } = this.#server.address() as AddressInfo
    return new WebSocket(`ws://127.0.0.1:${port}${path}`)
  }

  async *#read({ paper, after }: { paper: string; after: number }, signal: AbortSignal) {
    this.asked.push({ paper, after })
    if (paper === "none") throw new Fault("not_found", "there is no such paper")
    this.readers++
    try {
      for await (const entry of this.journal.read(after, signal)) {
        if (entry.item.line === "end") return
        yield entry
      }
    } finally {
      this.readers--
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#sockets[Symbol.dispose]()
    await new Promise((done) => this.#server.close(done))
  }
}

function heard(socket: WebSocket): unknown[] {
  const all: unknown[] = []
  socket.on("message", (data: Buffer) => all.push(JSON.parse(data.toString())))
  socket.on("error", () => undefined)
  return all
}

test("a feed on a WebSocket tells what is kept, then what happens, and its end", async () => {
  await using news = await News.open()
  news.journal.append({ line: "one" })
  news.journal.append({ line: "two" })
  const socket = news.socket("/v1/news/daily/follow?after=1")
  const all = heard(socket)
  await eventually(() => all.length === 1)
  news.journal.append({ line: "three" })
  news.journal.append({ line: "end" })
  const [code] = (await once(socket, "close")) as [number]
  expect([code, all, news.asked]).toEqual([
    1000,
    [
      { seq: 2, item: { line: "two" } },
      { seq: 3, item: { line: "three" } },
    ],
    [{ paper: "daily", after: 1 }],
  ])
})

test.each([
  ["/v1/news/none/follow", "not_found"],
  ["/v1/news/daily/follow?after=99", "resync"],
  ["/v1/news/daily/follow?after=x", "invalid"],
])("what cannot be told is told as a fault: %s", async (path, code) => {
  await using news = await News.open()
  const socket = news.socket(path)
  const all = heard(socket)
  const [closed] = (await once(socket, "close")) as [number]
  expect([closed, all]).toEqual([1011, [{ fault: expect.objectContaining({ code, requestId: "req_news" }) }]])
})

test("who leaves is not read for any more", async () => {
  await using news = await News.open()
  const socket = news.socket("/v1/news/daily/follow")
  await once(socket, "open")
  await eventually(() => news.readers === 1)
  socket.terminate()
  await eventually(() => news.readers === 0)
})

test("a socket that is open does not keep the request it was", async () => {
  await using news = await News.open()
  const socket = news.socket("/v1/news/morning/follow")
  const all = heard(socket)
  await once(socket, "open")
  news.journal.append({ line: "one" })
  await eventually(() => all.length === 1)
  await collected(news.lastRequest as WeakRef<object>)
  news.journal.append({ line: "two" })
  await eventually(() => all.length === 2)
  socket.terminate()
})
