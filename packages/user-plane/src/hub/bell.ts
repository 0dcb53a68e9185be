/** Rung when something has changed. Whoever waits looks again, and whoever comes too late has looked already. */
export class Bell {
  #rung = deferred()

  ring(): void {
    const { resolve } = this.#rung
    this.#rung = deferred()
    resolve()
  }

  /** Resolves with the next ring: asked for before looking, it misses nothing. */
  get next(): Promise<void> {
    return this.#rung.promise
  }

  /** True when it holds, false when the signal came first. */
  async until(holds: () => boolean, signal: AbortSignal): Promise<boolean> {
    const wake = (): void => this.ring()
    signal.addEventListener("abort", wake, { once: true })
    try {
      for (;;) {
        const { next } = this
        if (holds()) return true
        if (signal.aborted) return false
        await next
      }
    } finally {
      signal.removeEventListener("abort", wake)
    }
  }
}

function deferred(): { readonly promise: Promise<void>; resolve(): void } {
  let resolve = (): void => undefined
  const promise = new Promise<void>((done) => (resolve = done))
  return { promise, resolve }
}
