import { setMaxListeners } from "node:events"

/**
 * Aborts with the first of its sources. For work of which there is much, beside a source that outlives it: `AbortSignal.any` leaves
 * something at every source until the source itself is gone, and one of those is as old as the process.
 */
export class JoinedSignal implements Disposable {
  readonly #own = new AbortController()
  readonly #sources: readonly AbortSignal[]

  constructor(...sources: readonly AbortSignal[]) {
    this.#sources = sources
    // Each takes itself away, so that many at a time are no sign of a leak.
    setMaxListeners(0, ...sources)
    for (const source of sources) source.addEventListener("abort", this.#look, { once: true })
    this.#look()
  }

  get signal(): AbortSignal {
    return this.#own.signal
  }

  /** The work is over: nothing of it stays with the sources. */
  [Symbol.dispose](): void {
    for (const source of this.#sources) source.removeEventListener("abort", this.#look)
  }

  readonly #look = (): void => {
    const first = this.#sources.find(({ aborted }) => aborted)
    if (first) this.#own.abort(first.reason)
  }
}
