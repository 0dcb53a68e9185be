import type { Progress } from "../terminal/progress.ts"
import { bytesText } from "../terminal/units.ts"

/** What a copy has done so far. */
export class Tally {
  files = 0
  folders = 0
  links = 0
  bytes = 0
  /** What could not be carried over, and why, for the person who should know. */
  readonly skipped: string[] = []
  readonly #progress: Progress

  constructor(progress: Progress) {
    this.#progress = progress
  }

  /** Counts bytes on their way. */
  async *count<T extends Uint8Array>(name: string, source: AsyncIterable<T>): AsyncGenerator<T> {
    for await (const piece of source) {
      this.bytes += piece.length
      this.#progress.say(`${name}: ${bytesText(this.bytes)}, ${this.files} files`)
      yield piece
    }
  }

  toData() {
    const { files, folders, links, bytes, skipped } = this
    return { files, folders, links, bytes, skipped }
  }
}
