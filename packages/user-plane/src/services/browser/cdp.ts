import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import type { Line } from "../kept-service.ts"
import { browserLimits } from "../limits.ts"

type Params = Readonly<Record<string, unknown>>
type Result = Readonly<Record<string, unknown>>
type Heard = (method: string, params: Params) => void

interface Waiting {
  resolve(result: Result): void
  reject(fault: Fault): void
}

/** The DevTools protocol on the pipes of a browser: messages as JSON, each with a NUL behind it. */
export class Cdp implements Line {
  readonly #write: (bytes: Buffer) => void
  readonly #clock: Clock
  readonly #waiting = new Map<number, Waiting>()
  readonly #listeners = new Map<string, Heard>()
  readonly #turns: (() => void)[] = []
  #pieces: Buffer[] = []
  #bytes = 0
  #lastId = 0
  #over: Fault | undefined
  /** Pages that are open now. */
  pages = 0

  constructor(write: (bytes: Buffer) => void, clock: Clock) {
    this.#write = write
    this.#clock = clock
  }

  hear(bytes: Buffer): void {
    let from = 0
    for (let at = bytes.indexOf(0); at >= 0; at = bytes.indexOf(0, from)) {
      this.#pieces.push(bytes.subarray(from, at))
      const whole = Buffer.concat(this.#pieces)
      this.#pieces = []
      this.#bytes = 0
      from = at + 1
      this.#said(whole.toString())
    }
    if (from >= bytes.length) return
    this.#bytes += bytes.length - from
    if (this.#bytes > browserLimits.messageBytesMax)
      return this.end(new Fault("limit", "the browser said too much at once"))
    // A copy: the bytes are good until the next are asked for.
    this.#pieces.push(Buffer.from(bytes.subarray(from)))
  }

  async ready(signal: AbortSignal): Promise<void> {
    await this.ask("Browser.getVersion", {}, { signal })
  }

  end(reason: Fault): void {
    this.#over ??= reason
    for (const { reject } of this.#waiting.values()) reject(this.#over)
    this.#waiting.clear()
    for (const turn of this.#turns.splice(0)) turn()
  }

  /** Asks the browser, or one page of it. */
  async ask(method: string, params: Params, to: { signal: AbortSignal; page?: string | undefined }): Promise<Result> {
    if (this.#over) throw this.#over
    const id = ++this.#lastId
    const patience = new AbortController()
    const signal = AbortSignal.any([to.signal, patience.signal])
    const answer = new Promise<Result>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      signal.addEventListener("abort", () => reject(Fault.from(signal.reason)), { once: true })
    })
    const about = to.page === undefined ? {} : { sessionId: to.page }
    this.#write(Buffer.from(`${JSON.stringify({ id, method, params, ...about })}\0`))
    void this.#clock.sleep(browserLimits.answerMs, signal).then(
      () => patience.abort(new Fault("timeout", `the browser did not answer ${method}`)),
      () => undefined,
    )
    try {
      return await answer
    } finally {
      this.#waiting.delete(id)
      patience.abort()
    }
  }

  /** Is told what happens in a page, until disposed. */
  listen(page: string, heard: Heard): Disposable {
    this.#listeners.set(page, heard)
    return { [Symbol.dispose]: () => void this.#listeners.delete(page) }
  }

  /** A place for one more page; waits while there is none. */
  async place(signal: AbortSignal): Promise<Disposable> {
    if (this.#turns.length >= browserLimits.waitingMax) throw new Fault("limit", "too much is asked of this browser")
    while (this.pages >= browserLimits.pagesMax) {
      await new Promise<void>((resolve) => {
        this.#turns.push(resolve)
        signal.addEventListener("abort", () => resolve(), { once: true })
      })
      signal.throwIfAborted()
      if (this.#over) throw this.#over
    }
    this.pages++
    return {
      [Symbol.dispose]: () => {
        this.pages--
        this.#turns.shift()?.()
      },
    }
  }

  #said(text: string): void {
    const message = parsed(text)
    const { id, result, error, method, params, sessionId } = message
    if (typeof method === "string")
      return this.#listeners.get(typeof sessionId === "string" ? sessionId : "")?.(method, objectOf(params))
    const waiting = typeof id === "number" ? this.#waiting.get(id) : undefined
    if (error === undefined) return waiting?.resolve(objectOf(result))
    const { message: why } = objectOf(error)
    waiting?.reject(new Fault("unavailable", `the browser refused: ${typeof why === "string" ? why : "no reason"}`))
  }
}

function parsed(text: string): Params {
  try {
    return objectOf(JSON.parse(text))
  } catch {
    // The browser is inside and may be anybody: what is no message is none.
    return {}
  }
}

function objectOf(value: unknown): Params {
  return typeof value === "object" && value !== null ? (value as Params) : {}
}
