/** Lets only one thing happen to a key at a time, in the order asked for. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>()

  async take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key)
    // A failure before us is its caller's business.
    const mine = (before ?? Promise.resolve()).catch(() => undefined).then(work)
    this.#last.set(key, mine)
    try {
      return await mine
    } finally {
      if (this.#last.get(key) === mine) this.#last.delete(key)
    }
  }
}
