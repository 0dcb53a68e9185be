import { Fault } from "@warren/base/fault.ts"
import { streamTags } from "@warren/base/frame.ts"
import { Chunk, type Conversation } from "@warren/protocol/conversation.ts"

const pieceBytes = 128 * 1024

/** Bytes that are all there already, on their way to who asked. */
export class Picture implements Conversation<never, never> {
  readonly #bytes: Buffer
  #sent = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  next(): Promise<Chunk | undefined> {
    if (this.#sent >= this.#bytes.length) return Promise.resolve(undefined)
    const piece = this.#bytes.subarray(this.#sent, this.#sent + pieceBytes)
    this.#sent += piece.length
    return Promise.resolve(new Chunk(streamTags.raw, piece))
  }

  send(): void {
    throw new Fault("unsupported", "a picture takes nothing")
  }

  write(): Promise<void> {
    return Promise.reject(new Fault("unsupported", "a picture takes nothing"))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve()
  }
}
