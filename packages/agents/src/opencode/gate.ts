/** Many may be inside together; who closes it waits until they are out, and is alone then. Who comes meanwhile waits. */
export class Gate {
  #inside = 0
  #isClosed = false
  #waiting: (() => void)[] = []

  async enter(signal: AbortSignal): Promise<Disposable> {
    while (this.#isClosed) await this.#change(signal)
    signal.throwIfAborted()
    this.#inside++
    return this.#once(() => this.#inside--)
  }

  /** Closed at once where it is open: whoever comes after this call comes after what is done in it. */
  async close(signal: AbortSignal): Promise<Disposable> {
    while (this.#isClosed) await this.#change(signal)
    signal.throwIfAborted()
    this.#isClosed = true
    const open = this.#once(() => (this.#isClosed = false))
    try {
      while (this.#inside > 0) await this.#change(signal)
      return open
    } catch (failure) {
      open[Symbol.dispose]()
      throw failure
    }
  }

  #once(leave: () => void): Disposable {
    let isOver = false
    return {
      [Symbol.dispose]: () => {
        if (isOver) return
        isOver = true
        leave()
        for (const wake of this.#waiting.splice(0)) wake()
      },
    }
  }

  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason)
      const abort = (): void => reject(signal.reason)
      signal.addEventListener("abort", abort, { once: true })
      this.#waiting.push(() => {
        signal.removeEventListener("abort", abort)
        resolve()
      })
    })
  }
}
