/** What has come and was not read yet. Whoever fills it waits while it is full. */
export class Inbox<T> {
  readonly #sizeMax: number
  readonly #items: T[] = []
  #isClosed = false
  #arrival: Moment | undefined
  #room: Moment | undefined

  constructor(sizeMax: number) {
    this.#sizeMax = sizeMax
  }

  /** Resolves when there is room for the next. What comes after its end is for nobody. */
  async push(item: T): Promise<void> {
    if (this.#isClosed) return
    this.#items.push(item)
    this.#arrival?.come()
    this.#arrival = undefined
    while (this.#items.length >= this.#sizeMax && !this.#isClosed) await (this.#room ??= new Moment()).reached
  }

  /** Resolves when there is something to take, or never will be. */
  async filled(): Promise<void> {
    if (this.#items.length === 0 && !this.#isClosed) await (this.#arrival ??= new Moment()).reached
  }

  take(): T | undefined {
    const item = this.#items.shift()
    this.#room?.come()
    this.#room = undefined
    return item
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  close(): void {
    this.#isClosed = true
    this.#arrival?.come()
    this.#room?.come()
  }
}

class Moment {
  come: () => void = () => undefined
  readonly reached = new Promise<void>((resolve) => (this.come = resolve))
}
