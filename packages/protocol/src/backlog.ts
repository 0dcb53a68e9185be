/** Who is told to wait. Pausing a socket leaves the holding back to the kernel. */
interface Gate {
  pause(): void
  resume(): void
}

/** Past this the peer is held back, until half of it was read. */
export const backlogBytesMax = 2 * 1024 * 1024
/** What keeping one thing costs besides its bytes: a million pieces of one byte are not one mebibyte. */
const itemBytes = 256

interface Kept<T> {
  readonly item: T
  readonly bytes: number
}

/** What has come and was not read yet. It has one reader; a slow one holds the peer back. */
export class Backlog<T> {
  readonly #gate: Gate
  #items: Kept<T>[] = []
  #bytes = 0
  /** The one the reader works on: it counts until the next is asked for. */
  #readingBytes = 0
  #isHeld = false
  #end: (() => unknown) | undefined
  #wake: (() => void) | undefined

  constructor(gate: Gate) {
    this.#gate = gate
  }

  add(item: T, bytes: number): void {
    if (this.#end) return
    const cost = bytes + itemBytes
    this.#items.push({ item, bytes: cost })
    this.#bytes += cost
    if (!this.#isHeld && this.#bytes > backlogBytesMax) this.#hold(true)
    this.#awake()
  }

  /** Memory that what is kept lies in and that was not counted with it; negative when it is given back. */
  charge(bytes: number): void {
    this.#bytes += bytes
  }

  /** Asking for the next says that the one before is done with. Throws how it ended when everything was read. */
  async next(): Promise<T> {
    this.#bytes -= this.#readingBytes
    this.#readingBytes = 0
    if (this.#isHeld && this.#bytes <= backlogBytesMax / 2) this.#hold(false)
    for (;;) {
      const kept = this.#items.shift()
      if (kept) {
        this.#readingBytes = kept.bytes
        return kept.item
      }
      if (this.#end) throw this.#end()
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  /** Nothing more comes; what has come is still read. `reason` is made when somebody is told: most ends nobody asks about. */
  end(reason: () => unknown): void {
    this.#end ??= reason
    this.#awake()
  }

  /** Nothing more is read. What still comes is let in and forgotten, so that the peer is not held up for ever. */
  drop(thrown: unknown): void {
    this.end(() => thrown)
    this.#items = []
    this.#bytes = this.#readingBytes
    if (this.#isHeld) this.#hold(false)
  }

  #hold(isHeld: boolean): void {
    this.#isHeld = isHeld
    if (isHeld) this.#gate.pause()
    else this.#gate.resume()
  }

  #awake(): void {
    this.#wake?.()
    this.#wake = undefined
  }
}
