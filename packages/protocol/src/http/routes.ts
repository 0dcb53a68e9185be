import { Fault, messageOf } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import { Hono, type Context as HonoContext } from "hono"
import { isCall, isFeed, isStream, requestKeyCharsMax, type Call, type Feed, type Stream } from "../contract.ts"
import type { Caller, Context, Contract, Entry, Handlers, Numbered } from "../contract.ts"
import { describeIssues } from "../issues.ts"
import { respond, type Asked } from "./asked.ts"
import { sendBytes, sendHead, takeBytes } from "./byte-body.ts"
import { feedEvents } from "./events.ts"
import { feedSocket } from "./feed-socket.ts"
import { givenInput } from "./input.ts"
import { sendJson } from "./json.ts"
import { httpOf } from "./path.ts"
import { sendResult } from "./result.ts"
import { webSocket } from "./web-socket.ts"

export interface RouteOptions<C extends Contract> {
  readonly contract: C
  readonly handlers: Handlers<C>
  readonly log: Log
  /** What handlers answer was checked by the contract on its way here: it is not looked through a second time. */
  readonly isChecked?: boolean
  /** Who is asking; throws `unauthenticated` when nobody may. */
  caller(request: Request): Caller | Promise<Caller>
}

/** HTTP routes for everything in a contract that has one. */
export function routes<C extends Contract>(options: RouteOptions<C>): Hono {
  const app = new Hono()
  for (const [name, entry] of Object.entries(options.contract).toSorted(fixedFirst)) {
    if (!entry.http) continue
    const { method, path } = httpOf(entry.http)
    const place = path.replaceAll(/\{(\w+)\}/g, ":$1")
    const route = async (c: HonoContext, answer: typeof answerOf): Promise<Response> => {
      const caller = await options.caller(c.req.raw)
      return answer(entry, askedOf(options, name, c, caller))
    }
    if (isStream(entry) && (entry.body === "result" || entry.body === "socket")) {
      app.get(place, (c, next) => (isUpgrade(c) ? route(c, answerWebSocket).catch(asError) : next()))
    }
    if (isFeed(entry) && method === "GET") {
      app.get(place, (c, next) => (isUpgrade(c) ? route(c, answerFeedSocket).catch(asError) : next()))
    }
    app.on(method, place, (c) => route(c, answerOf).catch(asError))
  }
  return app
}

/** `/sessions/events` before `/sessions/{id}`, which would take it for a session. */
function fixedFirst([, a]: [string, Entry], [, b]: [string, Entry]): number {
  const order = ({ http = "GET /" }: Entry): string => httpOf(http).path.replaceAll(/\{\w+\}/g, "\u{10FFFF}")
  return order(a) < order(b) ? -1 : 1
}

type Unbound = Omit<Asked<Entry>, "entry"> & { readonly isChecked: boolean }

function askedOf<C extends Contract>(options: RouteOptions<C>, name: string, c: HonoContext, caller: Caller): Unbound {
  const gone = untilGone(c.req.raw.signal)
  const ask: Unbound["ask"] = (asked, given, { signal = gone, collects } = {}) => {
    const input = options.contract[asked]?.in.safeParse(given)
    if (!input) throw new Fault("internal", `there is no ${asked}`)
    if (!input.success) throw new Fault("invalid", describeIssues(input.error))
    const handler = options.handlers[asked] as (input: unknown, context: Context) => unknown
    return handler(input.data, { signal, caller, key: keyOf(c), collects })
  }
  return { c, name, log: options.log, signal: gone, ask, isChecked: options.isChecked ?? false }
}

async function answerOf(entry: Entry, asked: Unbound): Promise<Response> {
  // What is said after an upgrade is not read by anybody else: a body would never end, nor what makes it.
  if (isUpgrade(asked.c)) throw new Fault("invalid", "there is no WebSocket here")
  const given = await givenInput(asked.c, entry)
  if (isCall(entry)) return answerCall(entry, asked, given)
  if (asked.c.req.method === "HEAD") return answerHead(entry, asked, given)
  if (isFeed(entry)) return answerFeed(entry, asked, given)
  if (entry.body === "socket") throw new Fault("invalid", "this is a WebSocket", { hint: "ask for an upgrade" })
  if (entry.body === "result") return sendResult({ ...asked, entry }, given)
  return asked.c.req.method === "GET" ? sendBytes({ ...asked, entry }, given) : takeBytes({ ...asked, entry }, given)
}

async function answerCall(entry: Call, { c, name, ask, isChecked }: Unbound, given: object): Promise<Response> {
  const out = await ask(name, given)
  return sendJson(c, isChecked ? out : entry.out.parse(out), entry.makes ? 201 : 200)
}

function keyOf(c: HonoContext): string | undefined {
  const key = c.req.header("idempotency-key")
  if (key === undefined || (key.length > 0 && key.length <= requestKeyCharsMax)) return key
  throw new Fault("invalid", `Idempotency-Key: 1 to ${requestKeyCharsMax} characters`)
}

/** Nobody would read what a feed or a stream says: it must not begin. */
async function answerHead(entry: Feed | Stream, asked: Unbound, given: Record<string, unknown>): Promise<Response> {
  if (isStream(entry) && entry.body === "bytes") return sendHead({ ...asked, entry }, given)
  throw new Fault("invalid", "ask for this with GET")
}

function answerFeed(entry: Feed, asked: Unbound, given: object): Response {
  return feedEvents({ ...asked, entry }, asked.ask(asked.name, given) as AsyncIterable<Numbered<unknown>>)
}

async function answerFeedSocket(entry: Entry, asked: Unbound): Promise<Response> {
  return feedSocket({ ...asked, entry: entry as Feed }, await givenInput(asked.c, entry))
}

function answerWebSocket(entry: Entry, asked: Unbound): Promise<Response> {
  return webSocket({ ...asked, entry: entry as Stream }, { ...asked.c.req.query(), ...asked.c.req.param() })
}

/** One header alone asks for nothing: the server underneath takes that for a plain request, too. */
function isUpgrade(c: HonoContext): boolean {
  const isMeant = c.req.header("connection")?.toLowerCase().includes("upgrade") ?? false
  return isMeant && c.req.header("upgrade")?.toLowerCase() === "websocket"
}

/** Aborts with a reason we know: what the server underneath gives as one is a text, which would look like a bug. */
export function untilGone(client: AbortSignal): AbortSignal {
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
