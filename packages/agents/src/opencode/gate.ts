/** Many may be inside together; who closes it waits until they are out, and is alone then. Who comes meanwhile waits. */
export class Gate {
  #inside = 0
  #isClosed = false
  #waiting: (() => void)[] = []

  async enter(signal: AbortSignal): Promise<Disposable> {
    await this.#until(() => !this.#isClosed, signal)
    this.#inside++
    return this.#once(() => this.#inside--)
  }

  async close(signal: AbortSignal): Promise<Disposable> {
    await this.#until(() => !this.#isClosed, signal)
    this.#isClosed = true
    const open = this.#once(() => (this.#isClosed = false))
    try {
      await this.#until(() => this.#inside === 0, signal)
    } catch (failure) {
      open[Symbol.dispose]()
      throw failure
    }
    return open
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

  async #until(holds: () => boolean, signal: AbortSignal): Promise<void> {
    while (!holds()) {
      signal.throwIfAborted()
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve)
        signal.addEventListener("abort", () => resolve(), { once: true })
      })
    }
    signal.throwIfAborted()
  }
}
