import type { FileHandle } from "node:fs/promises"
import type { Entry } from "./entry.ts"

/** Which part of a file: from `offset`, at most `limit` bytes. */
export interface ByteRange {
  readonly offset?: number | undefined
  readonly limit?: number | undefined
}

const chunkBytes = 256 * 1024

/** A file that is being read: always the one that was opened, whatever gets its name meanwhile. */
export class OpenFile implements AsyncDisposable {
  readonly entry: Entry
  readonly #file: FileHandle
  readonly #range: ByteRange
  #isClosed = false

  constructor(file: FileHandle, entry: Entry, range: ByteRange) {
    this.#file = file
    this.entry = entry
    this.#range = range
  }

  /** Each piece is the reader's own. Ends where the file ends by then, should it have become shorter. */
  async *bytes(signal?: AbortSignal): AsyncGenerator<Uint8Array, void, void> {
    let position = this.#range.offset ?? 0
    const end = this.#range.limit === undefined ? Number.MAX_SAFE_INTEGER : position + this.#range.limit
    while (position < end) {
      signal?.throwIfAborted()
      const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, end - position))
      const { bytesRead } = await this.#file.read(chunk, 0, chunk.length, position)
      if (bytesRead === 0) return
      position += bytesRead
      yield chunk.subarray(0, bytesRead)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#file.close()
  }
}
