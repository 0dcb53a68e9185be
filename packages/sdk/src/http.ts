import { Fault, faultCodes, type FaultCode } from "@warren/base/fault.ts"
import { backoffMs, pause, retryLimits } from "./pause.ts"
import { placed, query, type CallRoute, type Input, type MakingRoute, type Output, type Route } from "./routes.ts"

export interface Waiting {
  /** Gives up, and ends what was asked for on the other side. */
  readonly signal?: AbortSignal | undefined
}

export interface HttpOptions {
  readonly url: string
  readonly token: string | undefined
  readonly fetch: typeof fetch
  /** Tries of one request, the first included; fewer for who has a patience of their own. */
  readonly triesMax?: number
}

export type Body = NonNullable<RequestInit["body"]>

interface Sent {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Body | undefined
  readonly signal?: AbortSignal | undefined
  /** Whether asking twice is the same as asking once. */
  readonly isSafe: boolean
}

/** Requests to one Warren: who asks, trying again where that is safe, and faults for everything that goes wrong. */
export class Http {
  readonly #options: HttpOptions

  constructor(options: HttpOptions) {
    this.#options = options
  }

  /** One call of the contract. */
  async call<R extends CallRoute>(route: R, input: Input<R>, waiting: Waiting = {}): Promise<Output<R>> {
    return this.#answer(route, input, waiting)
  }

  /** A call that makes something: it is given a key, so that trying again cannot make two. */
  async make<R extends MakingRoute>(
    route: R,
    input: Input<R>,
    waiting: Waiting & { key?: string } = {},
  ): Promise<Output<R>> {
    return this.#answer(route, input, waiting, waiting.key ?? crypto.randomUUID())
  }

  /** A request whose answer is read as it comes. */
  async open(
    route: Route,
    input: object,
    options: Waiting & { headers?: Readonly<Record<string, string>>; query?: object; body?: Body } = {},
  ): Promise<Response> {
    const { method, path, rest } = placed(route, input)
    const isBodiless = method === "GET" || method === "DELETE" || options.body !== undefined
    const asked = query({ ...(isBodiless ? rest : {}), ...options.query })
    return this.send({
      ...{ method, path: path + asked, headers: { ...options.headers, ...(isBodiless ? {} : json) } },
      body: options.body ?? (isBodiless ? undefined : JSON.stringify(rest)),
      ...{ signal: options.signal, isSafe: method === "GET" },
    })
  }

  /** Where a WebSocket for a path is, and what proves who opens it. */
  socket(path: string): { readonly url: string; readonly headers: Readonly<Record<string, string>> } {
    return { url: this.#options.url.replace(/^http/, "ws") + path, headers: this.#credentials() }
  }

  /** Answers that are not 2xx are thrown as the fault they tell. */
  async send(sent: Sent): Promise<Response> {
    for (let tries = 1; ; tries++) {
      const [response, failure] = await this.#try(sent)
      if (response?.ok) return response
      const askedMs = retryAfterMs(response)
      const fault = response ? await faultOf(response) : failure
      const isWorth = fault.isRetryable && (sent.isSafe || askedMs !== undefined) && fault.code !== "resync"
      if (!isWorth || tries >= (this.#options.triesMax ?? retryLimits.triesMax)) throw fault
      await pause(backoffMs(tries, askedMs), sent.signal)
    }
  }

  async #answer(route: string, input: object, { signal }: Waiting, key?: string): Promise<never> {
    const { method, path, rest } = placed(route, input)
    const hasBody = method !== "GET" && method !== "DELETE"
    const response = await this.send({
      ...{ method, path: hasBody ? path : path + query(rest), signal },
      headers: { ...(hasBody ? json : {}), ...(key === undefined ? {} : { "idempotency-key": key }) },
      body: hasBody ? JSON.stringify(rest) : undefined,
      isSafe: method === "GET" || key !== undefined,
    })
    return (await response.json().catch((cause: unknown) => {
      signal?.throwIfAborted()
      throw new Fault("unavailable", "the answer broke off", { cause })
    })) as never
  }

  async #try({ method, path, headers, body, signal }: Sent): Promise<[Response, undefined] | [undefined, Fault]> {
    const { url, fetch } = this.#options
    try {
      // A stream as a body is sent while the answer is awaited: Node wants that said.
      const half = body instanceof ReadableStream ? { duplex: "half" } : {}
      const init = { method, headers: { ...this.#credentials(), ...headers }, body, signal, ...half } as RequestInit
      return [await fetch(url + path, init), undefined]
    } catch (cause) {
      signal?.throwIfAborted()
      const hint = "is it running? WARREN_URL or `url` says where"
      return [undefined, new Fault("unavailable", `Warren does not answer at ${url}`, { cause, hint })]
    }
  }

  #credentials(): Record<string, string> {
    const { token } = this.#options
    return token === undefined ? {} : { authorization: `Bearer ${token}` }
  }
}

const json = { "content-type": "application/json" }

function retryAfterMs(response: Response | undefined): number | undefined {
  const seconds = response?.headers.get("retry-after")
  return seconds && /^\d+$/.test(seconds) ? Number(seconds) * 1000 : undefined
}

async function faultOf(response: Response): Promise<Fault> {
  const told = (await response.json().catch(() => undefined)) as { error?: Record<string, unknown> } | undefined
  return toFault(told?.error ?? { message: `Warren answered ${response.status}` }, response)
}

/** What a fault is on the wire, as one. */
export function toFault(told: Readonly<Record<string, unknown>>, response?: Response): Fault {
  const text = (name: string): string | undefined => (typeof told[name] === "string" ? told[name] : undefined)
  const known = text("code")
  const byStatus = Object.entries(faultCodes).find(([, { status }]) => status === response?.status)?.[0]
  const code = (known !== undefined && known in faultCodes ? known : (byStatus ?? "internal")) as FaultCode
  const requestId = text("requestId") ?? response?.headers.get("x-request-id") ?? undefined
  return new Fault(code, text("message") ?? "it failed", { hint: text("hint"), subject: text("subject"), requestId })
}
