/** How much goes on for each key at this moment. */
export class AtOnce {
  readonly #counts = new Map<string, number>()

  /** What to call when it is over, once or more often; undefined when so many go on already. */
  enter(key: string, max: number): (() => void) | undefined {
    const count = this.#counts.get(key) ?? 0
    if (count >= max) return undefined
    this.#counts.set(key, count + 1)
    let isOver = false
    return () => {
      if (!isOver) this.#leave(key)
      isOver = true
    }
  }

  /** Keys for which nothing goes on are not remembered. */
  get size(): number {
    return this.#counts.size
  }

  #leave(key: string): void {
    const left = (this.#counts.get(key) ?? 1) - 1
    if (left === 0) this.#counts.delete(key)
    else this.#counts.set(key, left)
  }
}
