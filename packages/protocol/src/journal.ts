import { Fault } from "@warren/base/fault.ts"
import type { Numbered } from "./contract.ts"

interface Reader {
  wake(): void
}

/**
 * The last things that happened, numbered, for any number of readers. It keeps `itemsMax`; a reader who asks for, or falls
 * back to, something older gets `resync`, never a silent gap and never a growing buffer.
 */
export class Journal<T> {
  readonly #itemsMax: number
  readonly #items: T[] = []
  readonly #readers = new Set<Reader>()
  /** The number of the oldest item kept. */
  #first: number

  /**
   * `first`: the number of the first item. A journal that begins anew with its process takes one that no earlier process can
   * have reached (`Date.now() * 1000`), so that a reader who knows the old one is told, not served other things.
   */
  constructor(itemsMax: number, first = 1) {
    this.#itemsMax = itemsMax
    this.#first = first
  }

  /** The number of the newest item, or the one before the first. */
  get last(): number {
    return this.#first + this.#items.length - 1
  }

  append(item: T): number {
    this.#items.push(item)
    // Cut in batches: taking one from the front of a long array at every append would cost its length each time.
    if (this.#items.length >= this.#itemsMax * 2) {
      this.#first += this.#items.length - this.#itemsMax
      this.#items.splice(0, this.#items.length - this.#itemsMax)
    }
    for (const reader of this.#readers) reader.wake()
    return this.last
  }

  /** Up to `limit` of the newest items. */
  tail(limit: number): Numbered<T>[] {
    const from = Math.max(this.#first, this.last - limit + 1)
    return this.#items.slice(from - this.#first).map((item, index) => ({ seq: from + index, item }))
  }

  /** Everything after number `after` (0: everything kept), then everything that happens next, until the signal. */
  async *read(after: number, signal: AbortSignal): AsyncGenerator<Numbered<T>, void, void> {
    let next = after === 0 ? this.#first : after + 1
    while (!signal.aborted) {
      if (next < this.#first) throw this.#resync(`items ${next} to ${this.#first - 1} are no longer kept`)
      // The reader knows a journal that was before this one: the same numbers mean other things here.
      if (next > this.last + 1) throw this.#resync(`there is no item ${next - 1} yet`)
      const item = this.#items[next - this.#first]
      if (next <= this.last) yield { seq: next++, item: item as T }
      else await this.#appended(signal)
    }
    signal.throwIfAborted()
  }

  #resync(message: string): Fault {
    return new Fault("resync", message, { hint: `read the current state, then continue after ${this.last}` })
  }

  #appended(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const reader: Reader = {
        wake: () => {
          this.#readers.delete(reader)
          signal.removeEventListener("abort", reader.wake)
          resolve()
        },
      }
      this.#readers.add(reader)
      signal.addEventListener("abort", reader.wake, { once: true })
    })
  }
}
