import { randomBytes } from "node:crypto"
import { version } from "@warren/base/build-info.ts"
import { messageOf } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"

export const traceLimits = { waitingMax: 2_048, perSend: 512, sendMs: 2_000, timeoutMs: 5_000 } as const

export interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentId: string | undefined
}

interface Ended extends Span {
  readonly name: string
  readonly startMs: number
  readonly endMs: number
  readonly status: number
}

/** The W3C header `traceparent`; undefined when it is none. */
export function parseTraceparent(header: string | null): { traceId: string; parentId: string } | undefined {
  const found = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-[\da-f]{2}(-.*)?$/.exec(header ?? "")
  const [, form = "ff", traceId = "", parentId = "", more] = found ?? []
  const isReal = form !== "ff" && !(form === "00" && more !== undefined)
  return isReal && !/^0+$/.test(traceId) && !/^0+$/.test(parentId) ? { traceId, parentId } : undefined
}

export function newSpan(header: string | null): Span {
  const parent = parseTraceparent(header)
  return {
    traceId: parent?.traceId ?? randomBytes(16).toString("hex"),
    spanId: randomBytes(8).toString("hex"),
    parentId: parent?.parentId,
  }
}

export function traceparentOf({ traceId, spanId }: Span): string {
  return `00-${traceId}-${spanId}-01`
}

/** Sends spans to an OpenTelemetry collector (OTLP over HTTP, as JSON). A collector that is away costs spans, nothing else. */
export class Traces implements AsyncDisposable {
  readonly #url: URL
  readonly #log: Log
  readonly #waiting: Ended[] = []
  readonly #timer: NodeJS.Timeout
  #sending: Promise<void> | undefined
  dropped = 0

  /** `endpoint`: OTEL_EXPORTER_OTLP_ENDPOINT, without the path. */
  constructor(endpoint: string, log: Log) {
    this.#url = new URL(`${endpoint.replace(/\/$/, "")}/v1/traces`)
    this.#log = log
    this.#timer = setInterval(() => void this.send(), traceLimits.sendMs)
    this.#timer.unref()
  }

  add(span: Ended): void {
    if (this.#waiting.length < traceLimits.waitingMax) this.#waiting.push(span)
    else this.dropped++
  }

  send(): Promise<void> {
    this.#sending ??= this.#send().finally(() => (this.#sending = undefined))
    return this.#sending
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    await this.send()
    await this.send()
  }

  async #send(): Promise<void> {
    const spans = this.#waiting.splice(0, traceLimits.perSend)
    if (spans.length === 0) return
    try {
      const response = await fetch(this.#url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(payloadOf(spans)),
        signal: AbortSignal.timeout(traceLimits.timeoutMs),
      })
      await response.body?.cancel()
      if (!response.ok) throw new Error(`the collector answered ${response.status}`)
    } catch (thrown) {
      this.dropped += spans.length
      this.#log("warn", "traces.lost", { spans: spans.length, message: messageOf(thrown) })
    }
  }
}

const server = 2
const failed = 2
const nanos = (ms: number): string => `${Math.round(ms * 1_000)}000`

function payloadOf(spans: readonly Ended[]): object {
  const attribute = (key: string, value: string) => ({ key, value: { stringValue: value } })
  const resource = { attributes: [attribute("service.name", "warren-control"), attribute("service.version", version)] }
  const scope = { name: "warren", version }
  const made = spans.map(({ traceId, spanId, parentId, name, startMs, endMs, status }) => ({
    ...{ traceId, spanId, ...(parentId === undefined ? {} : { parentSpanId: parentId }), name, kind: server },
    startTimeUnixNano: nanos(startMs),
    endTimeUnixNano: nanos(endMs),
    attributes: [{ key: "http.response.status_code", value: { intValue: String(status) } }],
    status: status >= 500 ? { code: failed } : {},
  }))
  return { resourceSpans: [{ resource, scopeSpans: [{ scope, spans: made }] }] }
}
