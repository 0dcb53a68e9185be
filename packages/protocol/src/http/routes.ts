import { TextDecoder } from "node:util"
import { randomBytes } from "node:crypto"
import { Fault, faultCodes, messageOf } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import { Hono, type Context as HonoContext } from "hono"
import type { ContentfulStatusCode } from "hono/utils/http-status"
import { streamSSE } from "hono/streaming"
import {
  isFeed,
  isStream,
  type Call,
  type Caller,
  type Context,
  type Contract,
  type Feed,
  type Handlers,
  type Numbered,
} from "../contract.ts"
import { describeIssues } from "../issues.ts"
import { httpOf } from "./path.ts"

export interface RouteOptions<C extends Contract> {
  readonly contract: C
  readonly handlers: Handlers<C>
  readonly log: Log
  /** Who is asking; throws `unauthenticated` when nobody may. */
  caller(request: Request): Caller | Promise<Caller>
}

const bodyBytesMax = 1024 * 1024
const heartbeatMs = 15_000

/** HTTP routes for everything in a contract that has one. */
export function routes<C extends Contract>(options: RouteOptions<C>): Hono {
  const app = new Hono()
  for (const [name, entry] of Object.entries(options.contract)) {
    if (!entry.http || isStream(entry)) continue
    const { method, path } = httpOf(entry.http)
    const handler = options.handlers[name] as (input: unknown, context: Context) => unknown
    const route = async (c: HonoContext): Promise<Response> => {
      const caller = await options.caller(c.req.raw)
      const input = await readInput(c, entry)
      const context: Context = { signal: untilGone(c.req.raw.signal), caller }
      if (!isFeed(entry)) return c.json(entry.out.parse(await handler(input, context)) as object)
      return stream(c, entry, handler(input, context) as AsyncIterable<Numbered<unknown>>, options.log)
    }
    app.on(method, path.replaceAll(/\{(\w+)\}/g, ":$1"), (c) => route(c).catch(asError))
  }
  return app
}

/** Aborts with a reason we know: what the server underneath gives as one is a text, which would look like a bug. */
function untilGone(client: AbortSignal): AbortSignal {
  const controller = new AbortController()
  const abort = (): void => controller.abort(new Fault("cancelled", "the caller went away"))
  if (client.aborted) abort()
  else client.addEventListener("abort", abort, { once: true })
  return controller.signal
}

/** Hono hands only errors to `onError`; anything else that is thrown would go past it. */
function asError(thrown: unknown): never {
  throw thrown instanceof Error ? thrown : new Error(String(thrown))
}

/** Answers anything thrown, and anything unknown, with a typed error; a bug is logged with its stack and told as nothing. */
export function answerFaults(app: Hono, log: Log): void {
  app.notFound((c) => respond(c, new Fault("not_found", `there is no ${c.req.method} ${c.req.path}`)))
  app.onError((thrown, c) => {
    const fault = Fault.from(thrown)
    if (fault.code === "internal") {
      log("error", "http.bug", { path: c.req.path, message: messageOf(thrown), stack: thrown.stack })
    }
    return respond(c, fault)
  })
}

function respond(c: HonoContext, fault: Fault): Response {
  const requestId = `req_${randomBytes(10).toString("hex")}`
  const status = faultCodes[fault.code].status as ContentfulStatusCode
  return c.json({ error: { ...fault.toData(), requestId } }, status, { "x-request-id": requestId })
}

async function readInput(c: HonoContext, entry: Call | Feed): Promise<unknown> {
  const given = c.req.method === "GET" || c.req.method === "DELETE" ? c.req.query() : await readBody(c)
  const resumed = isFeed(entry) ? lastEventId(c) : {}
  const input = entry.in.safeParse({ ...given, ...resumed, ...c.req.param() })
  if (!input.success) throw new Fault("invalid", describeIssues(input.error))
  return input.data
}

async function readBody(c: HonoContext): Promise<object> {
  const text = await readText(c.req.raw)
  if (text === "") return {}
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value
  } catch {
    // Falls through to the one answer for everything that is not an object.
  }
  throw new Fault("invalid", "the body is not a JSON object")
}

/** The body, never more of it than the limit, whatever its headers say. */
async function readText(request: Request): Promise<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true })
  let text = ""
  let bytes = 0
  const chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array> = request.body ?? []
  for await (const chunk of chunks) {
    bytes += chunk.length
    if (bytes > bodyBytesMax) throw new Fault("limit", `the body is over ${bodyBytesMax} bytes`)
    text += decode(decoder, chunk)
  }
  return text + decode(decoder)
}

function decode(decoder: TextDecoder, chunk?: Uint8Array): string {
  try {
    return decoder.decode(chunk, { stream: chunk !== undefined })
  } catch (cause) {
    throw new Fault("invalid", "the body is not UTF-8", { cause })
  }
}

/** A browser that reconnects says by itself where it was. */
function lastEventId(c: HonoContext): { after?: string } {
  const id = c.req.header("last-event-id")
  return id === undefined ? {} : { after: id }
}

function stream(c: HonoContext, entry: Feed, items: AsyncIterable<Numbered<unknown>>, log: Log): Response {
  return streamSSE(c, async (sse) => {
    const heartbeat = setInterval(() => void sse.write(": still here\n\n"), heartbeatMs)
    try {
      for await (const { seq, item } of items) {
        if (sse.aborted) return
        await sse.writeSSE({ id: String(seq), event: "item", data: JSON.stringify(entry.each.parse(item)) })
      }
      await sse.writeSSE({ event: "end", data: "{}" })
    } catch (thrown) {
      const fault = Fault.from(thrown)
      if (fault.code === "internal") log("error", "http.bug", { path: c.req.path, message: messageOf(thrown) })
      await sse.writeSSE({ event: "fault", data: JSON.stringify(fault.toData()) })
    } finally {
      clearInterval(heartbeat)
    }
  })
}
