import { Fault } from "@warren/base/fault.ts"
import { hubLimits } from "./frames.ts"

export interface Kept<M> {
  readonly seq: number
  readonly message: M
  readonly bytes: number
}

/** What one end of a link must not forget: what it has taken, and what the other end may not have. */
export interface LinkMemory<M> {
  readonly received: number
  note(seq: number): void
  /** Gives it the next number. */
  push(message: M): Kept<M>
  /** The other end has everything up to here. */
  forget(upTo: number): void
  /** In order, at most `limit` of those after `seq`. */
  after(seq: number, limit: number): Kept<M>[]
}

/** A memory as long as its process. */
export class ProcessMemory<M> implements LinkMemory<M> {
  received = 0
  #last = 0
  #kept: Kept<M>[] = []
  #bytes = 0

  /** When it is full nothing more can be pushed: whoever has more to say waits. */
  get isFull(): boolean {
    return this.#kept.length >= hubLimits.keptMessages || this.#bytes >= hubLimits.keptBytes
  }

  note(seq: number): void {
    this.received = seq
  }

  push(message: M): Kept<M> {
    if (this.isFull) throw new Fault("limit", "too much was said that nobody has heard yet")
    const kept = { seq: ++this.#last, message, bytes: Buffer.byteLength(JSON.stringify(message)) }
    this.#kept.push(kept)
    this.#bytes += kept.bytes
    return kept
  }

  forget(upTo: number): void {
    const count = this.#kept.findIndex(({ seq }) => seq > upTo)
    const gone = this.#kept.splice(0, count < 0 ? this.#kept.length : count)
    for (const { bytes } of gone) this.#bytes -= bytes
  }

  after(seq: number, limit: number): Kept<M>[] {
    const first = this.#kept[0]
    if (!first) return []
    const from = Math.max(0, seq + 1 - first.seq)
    return this.#kept.slice(from, from + limit)
  }
}
