import { Fault } from "@warren/base/fault.ts"

/** Bytes as they come, taken in the sizes a reader asks for. */
export class ByteSource {
  readonly #iterator: AsyncIterator<Uint8Array>
  #rest: Buffer = Buffer.alloc(0)
  #isOver = false

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#iterator = source[Symbol.asyncIterator]()
  }

  /** Exactly so many; undefined when the source was over before the first. */
  async exactly(length: number): Promise<Buffer | undefined> {
    const parts: Buffer[] = []
    let missing = length
    while (missing > 0) {
      if (!(await this.#fill())) {
        if (missing === length) return undefined
        throw new Fault("invalid", "the archive ends in the middle of something")
      }
      const part = this.#take(missing)
      parts.push(part)
      missing -= part.length
    }
    return parts.length === 1 ? parts[0] : Buffer.concat(parts)
  }

  /** The next of `left` bytes, as many as there are at once. */
  async some(left: number): Promise<Buffer> {
    if (!(await this.#fill())) throw new Fault("invalid", "the archive ends in the middle of something")
    return this.#take(left)
  }

  async skip(length: number): Promise<void> {
    for (let left = length; left > 0;) left -= (await this.some(left)).length
  }

  /** Reads to the end, so that what counts or hashes on the way has seen everything. */
  async drain(): Promise<void> {
    while (await this.#fill()) this.#rest = Buffer.alloc(0)
  }

  async close(): Promise<void> {
    this.#isOver = true
    await this.#iterator.return?.()
  }

  async #fill(): Promise<boolean> {
    while (this.#rest.length === 0) {
      if (this.#isOver) return false
      const next = await this.#iterator.next()
      if (next.done) this.#isOver = true
      else this.#rest = Buffer.from(next.value.buffer, next.value.byteOffset, next.value.byteLength)
    }
    return true
  }

  #take(length: number): Buffer {
    const part = this.#rest.subarray(0, length)
    this.#rest = this.#rest.subarray(part.length)
    return part
  }
}
