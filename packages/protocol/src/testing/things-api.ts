import { once } from "node:events"
import type { AddressInfo, Server } from "node:net"
import { serve } from "@hono/node-server"
import { Fault } from "@warren/base/fault.ts"
import { createLog } from "@warren/base/log.ts"
import { Hono } from "hono"
import { z } from "zod"
import { contract, type Context, type Handlers } from "../contract.ts"
import { answerFaults, routes } from "../http/routes.ts"
import { Journal } from "../journal.ts"

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

/** Calls and feeds over HTTP that do on demand what a test wants to see. */
export class ThingsApi {
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

/** One on a port of this machine, for as long as the work. */
export async function servedThings(work: (api: ThingsApi, port: number) => Promise<void>): Promise<void> {
  const api = new ThingsApi()
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

export const request = (
  port: number,
  path: string,
  init: Omit<RequestInit, "headers"> & { headers?: Record<string, string> } = {},
): Promise<Response> =>
  fetch(`http://127.0.0.1:${port}${path}`, { ...init, headers: { authorization: "me", ...init.headers } })

/** The events of a stream so far: one object per event. */
export const eventsIn = (text: string): Record<string, string>[] =>
  text
    .split("\n\n")
    .filter((block) => block.includes("data:"))
    .map((block) => Object.fromEntries(block.split("\n").map((line) => line.split(/: (.*)/s).slice(0, 2))))
