import { systemClock, type Clock } from "@warren/base/clock.ts"
import { Fault, isCancellation, type FaultCode } from "@warren/base/fault.ts"
import { retry } from "@warren/base/retry.ts"
import type { Reference } from "../reference.ts"
import { checkAddress, registryAddress } from "./address.ts"
import { basic, readChallenge, readToken, tokenAddress, type Credentials } from "./auth.ts"

export interface RegistryOptions {
  readonly credentials?: Credentials | undefined
  /** Ask without encryption although the registry is not on this machine. */
  readonly isPlainHttp?: boolean | undefined
  readonly fetch?: typeof fetch | undefined
  readonly clock?: Clock | undefined
  readonly tries?: Partial<Tries> | undefined
  readonly silenceMs?: number | undefined
}

export interface Tries {
  readonly triesMax: number
  readonly baseMs: number
  readonly capMs: number
}

const defaultTries: Tries = { triesMax: 6, baseMs: 250, capMs: 8_000 }
const redirectsMax = 5
const defaultSilenceMs = 30_000
/** The longest wait that a registry may ask for. */
const retryAfterMaxMs = 30_000

interface Ask {
  readonly headers?: Readonly<Record<string, string>>
  readonly signal: AbortSignal
}

/** A repository of a registry, asked over HTTP (OCI distribution, Docker's v2). */
export class RegistryClient {
  readonly #reference: Reference
  readonly #options: RegistryOptions
  readonly #base: URL
  readonly #fetch: typeof fetch
  #authorization: string | undefined

  constructor(reference: Reference, options: RegistryOptions) {
    this.#reference = reference
    this.#options = options
    this.#base = registryAddress(reference, options.isPlainHttp === true)
    this.#fetch = options.fetch ?? fetch
  }

  /** How long the registry may say nothing. */
  get silenceMs(): number {
    return this.#options.silenceMs ?? defaultSilenceMs
  }

  get tries(): Tries {
    return { ...defaultTries, ...this.#options.tries }
  }

  get clock(): Clock {
    return this.#options.clock ?? systemClock
  }

  /** Tries again what is worth it: lost connections, 429, 5xx. */
  retry<T>(work: (attempt: number) => Promise<T>, signal: AbortSignal): Promise<T> {
    return retry(work, { ...this.tries, clock: this.clock, signal })
  }

  /** A small document, whole. */
  async document(
    path: string,
    { bytesMax, ...ask }: Ask & { bytesMax: number },
  ): Promise<{ type: string; bytes: Buffer }> {
    return this.retry(async () => {
      const response = await this.get(path, ask)
      const type = (response.headers.get("content-type") ?? "").split(";")[0]?.trim() ?? ""
      return { type, bytes: await whole(response, path, bytesMax) }
    }, ask.signal)
  }

  /** One answer, after logging in and following where it leads. What is not 200 or 206 is thrown. */
  async get(path: string, ask: Ask): Promise<Response> {
    const address = new URL(`${this.#reference.repository}/${path}`, this.#base)
    let response = await this.#follow(address, ask)
    if (response.status === 401) {
      await discard(response)
      this.#authorization = await this.#login(response, ask.signal)
      response = await this.#follow(address, ask)
    }
    if (response.status === 200 || response.status === 206) return response
    await discard(response)
    await this.#pause(response, ask.signal)
    throw refusal(response.status, `${this.#reference.registry}/${this.#reference.repository}: ${path}`)
  }

  async #follow(start: URL, { headers, signal }: Ask): Promise<Response> {
    let address = start
    for (let hop = 0; hop <= redirectsMax; hop++) {
      // Whoever a registry sends us to does not get what the registry was told.
      const isOurs = address.origin === this.#base.origin
      const authorization = isOurs && this.#authorization !== undefined ? { authorization: this.#authorization } : {}
      const response = await this.#send(address, { ...headers, ...authorization }, signal)
      const location = response.headers.get("location")
      if (response.status < 300 || response.status >= 400 || location === null) return response
      await discard(response)
      address = new URL(location, address)
    }
    throw new Fault("unavailable", "the registry leads in circles")
  }

  async #send(address: URL, headers: Record<string, string>, signal: AbortSignal): Promise<Response> {
    checkAddress(address, this.#options.isPlainHttp === true)
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(new Fault("timeout", `${address.host} does not answer`)), this.silenceMs)
    try {
      // Blobs are compressed as they are: what a server packs on the way would not be the bytes of the digest.
      const all = { "accept-encoding": "identity", "user-agent": "warren", ...headers }
      const either = AbortSignal.any([signal, late.signal])
      return await this.#fetch(address, { headers: all, redirect: "manual", signal: either })
    } catch (cause) {
      signal.throwIfAborted()
      if (cause instanceof Fault || isCancellation(cause)) throw cause
      throw new Fault("unavailable", `could not reach ${address.host}`, { cause })
    } finally {
      clearTimeout(timer)
    }
  }

  async #login(response: Response, signal: AbortSignal): Promise<string> {
    const { credentials } = this.#options
    const challenge = readChallenge(response.headers.get("www-authenticate"))
    const subject = `registry:${this.#reference.registry}`
    const missing = new Fault("unauthenticated", `${this.#reference.registry} wants a user and a password`, { subject })
    if (!challenge) throw missing
    if (challenge.scheme === "basic") {
      if (!credentials) throw missing
      return basic(credentials)
    }
    const address = tokenAddress(challenge, `repository:${this.#reference.repository}:pull`)
    const headers = credentials ? { authorization: basic(credentials) } : {}
    const answer = await this.#send(address, headers, signal)
    if (answer.status !== 200) {
      await discard(answer)
      await this.#pause(answer, signal)
      throw refusal(answer.status, `the token service of ${this.#reference.registry}`)
    }
    const bytes = await whole(answer, "the token", tokenBytesMax)
    try {
      return readToken(JSON.parse(bytes.toString()))
    } catch (cause) {
      throw cause instanceof Fault ? cause : new Fault("unavailable", "the token service gave no token", { cause })
    }
  }

  async #pause(response: Response, signal: AbortSignal): Promise<void> {
    if (response.status !== 429 && response.status !== 503) return
    const seconds = Number(response.headers.get("retry-after") ?? "")
    if (seconds > 0) await this.clock.sleep(Math.min(seconds * 1000, retryAfterMaxMs), signal)
  }
}

const tokenBytesMax = 256 * 1024

const codes: Readonly<Record<number, FaultCode>> = {
  401: "unauthenticated",
  403: "forbidden",
  404: "not_found",
  408: "timeout",
  416: "resync",
  429: "limit",
}

const words: Readonly<Partial<Record<FaultCode, string>>> = {
  unauthenticated: "the registry does not accept the user and password",
  forbidden: "the registry refuses",
  not_found: "the registry does not have it",
  limit: "the registry is asked too often",
}

function refusal(status: number, what: string): Fault {
  const code = codes[status] ?? (status >= 500 ? "unavailable" : "invalid")
  return new Fault(code, `${words[code] ?? `the registry answers ${status}`} (${what})`)
}

async function discard(response: Response): Promise<void> {
  await response.body?.cancel().catch(() => undefined)
}

async function whole(response: Response, what: string, bytesMax: number): Promise<Buffer> {
  const parts: Uint8Array[] = []
  let length = 0
  try {
    for await (const part of (response.body ?? []) as AsyncIterable<Uint8Array>) {
      length += part.length
      if (length > bytesMax) throw new Fault("limit", `${what} is larger than ${bytesMax} bytes`, { subject: what })
      parts.push(part)
    }
  } catch (cause) {
    if (cause instanceof Fault || isCancellation(cause)) throw cause
    throw new Fault("unavailable", `the connection broke while reading ${what}`, { cause })
  }
  return Buffer.concat(parts)
}
