import { isRecycling } from "@warren/base/unix-socket.ts"

/**
 * Gives the memory that bytes came in back to their connection once they were written: collecting the memory of a flood costs more
 * than passing it on. Pieces of one read share its memory, and come one after the other; so it is free when all that came
 * were written and a piece of another read has come since.
 */
export class LentMemory {
  readonly #source: object
  readonly #unwritten = new Map<ArrayBufferLike, number>()
  #newest: ArrayBufferLike | undefined

  constructor(source: object) {
    this.#source = source
  }

  /** A piece is on its way; the result is called when it was written. */
  take({ buffer }: Buffer): () => void {
    const before = this.#newest
    this.#newest = buffer
    this.#unwritten.set(buffer, (this.#unwritten.get(buffer) ?? 0) + 1)
    if (before !== undefined && before !== buffer) this.#giveBack(before)
    return () => {
      this.#unwritten.set(buffer, (this.#unwritten.get(buffer) ?? 1) - 1)
      if (buffer !== this.#newest) this.#giveBack(buffer)
    }
  }

  #giveBack(memory: ArrayBufferLike): void {
    if (this.#unwritten.get(memory) !== 0) return
    this.#unwritten.delete(memory)
    if (isRecycling(this.#source)) this.#source.recycle(memory)
  }
}
