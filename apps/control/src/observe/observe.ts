import type { Clock } from "@warren/base/clock.ts"
import type { HttpBindings } from "@hono/node-server"
import { Fault } from "@warren/base/fault.ts"
import { publicCalls } from "@warren/protocol/control-plane.ts"
import type { MiddlewareHandler } from "hono"
import type { Gate } from "../gate.ts"
import { Visit } from "../visit.ts"
import { callNames } from "./call-names.ts"
import type { Metrics } from "./metrics.ts"
import { newSpan, parseTraceparent, traceparentOf, type Traces } from "./traces.ts"

interface ObserveParts {
  readonly gate: Gate
  readonly metrics: Metrics
  readonly traces: Traces | undefined
  readonly clock: Clock
}

/** The visits that are going on, by their requests. */
export class Visits {
  readonly #visits = new WeakMap<Request, Visit>()

  begin(request: Request, address: string): Visit {
    const visit = new Visit(address)
    this.#visits.set(request, visit)
    return visit
  }

  readonly of = (request: Request): Visit => {
    const visit = this.#visits.get(request)
    if (!visit) throw new Fault("internal", "a request came in past the door")
    return visit
  }
}

const nameOf = callNames(publicCalls)
const addressCharsMax = 64
/** Refusals that say something about whoever asked. */
const refusals: Readonly<Record<number, string>> = { 401: "unauthenticated", 403: "forbidden", 429: "limit" }

/** Around every request: gives it its id, counts it, traces it, and writes down what was refused. */
export function observe(visits: Visits, { gate, metrics, traces, clock }: ObserveParts): MiddlewareHandler {
  return async (c, next) => {
    const visit = visits.begin(c.req.raw, addressOf(c.env as Partial<HttpBindings> | undefined))
    c.set("requestId", visit.requestId)
    c.header("x-request-id", visit.requestId)
    const span = traces && newSpan(c.req.header("traceparent") ?? null)
    if (span) c.header("traceparent", traceparentOf(span))
    visit.trace = span ? traceparentOf(span) : passedOn(c.req.header("traceparent"))
    const [startMs, started] = [clock.now(), clock.monotonic()]
    metrics.inFlight++
    try {
      await next()
    } finally {
      metrics.inFlight--
    }
    const { status } = c.res
    const call = visit.call ?? nameOf(c.req.method, c.req.path) ?? "other"
    const ms = clock.monotonic() - started
    metrics.observe({ call, status, seconds: ms / 1000 })
    if (span) traces.add({ ...span, name: call, startMs, endMs: startMs + ms, status })
    const refusal = refusals[status]
    if (refusal !== undefined) gate.noteRefusal(visit, call, refusal)
    // Those that are not known before the answer is; few answers have any.
    for (const [name, value] of visit.headers) c.header(name, value, { append: true })
  }
}

/** What is traced by others goes on, also where nothing of it is told from here. */
function passedOn(header: string | undefined): string | undefined {
  return header !== undefined && parseTraceparent(header) ? header.slice(0, 55) : undefined
}

/** Whoever connected. What a header says about it is only what somebody said. */
function addressOf(env: Partial<HttpBindings> | undefined): string {
  return (env?.incoming?.socket.remoteAddress ?? "").slice(0, addressCharsMax)
}
