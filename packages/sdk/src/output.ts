/** Which of a program's outputs. `pty` is both, on a terminal. */
export type OutputName = "stdout" | "stderr" | "pty"

/** A piece of what a program said. */
export interface Piece {
  readonly from: OutputName
  readonly bytes: Uint8Array<ArrayBuffer>
  /** The same as text; a character that was cut in two is in the piece that ends it. */
  readonly text: string
}

/** Bytes of each output that a result keeps; callbacks and iterators get everything. */
const keptBytesMax = 64 * 1024 * 1024

/** One output of a program: text as it comes, and the bytes for its result. */
export class Output {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true })
  readonly #kept: Uint8Array[] = []
  #bytes = 0
  isCut = false

  add(bytes: Uint8Array): string {
    const kept = bytes.subarray(0, keptBytesMax - this.#bytes)
    if (kept.length < bytes.length) this.isCut = true
    this.#bytes += kept.length
    if (kept.length > 0) this.#kept.push(kept)
    return this.#decoder.decode(bytes, { stream: true })
  }

  bytes(): Uint8Array<ArrayBuffer> {
    const all = new Uint8Array(this.#bytes)
    let at = 0
    for (const piece of this.#kept) {
      all.set(piece, at)
      at += piece.length
    }
    return all
  }
}

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
}

/** Turns the bytes of each output into pieces. */
export class Pieces {
  readonly #decoders = new Map<OutputName, InstanceType<typeof TextDecoder>>()

  of(from: OutputName, bytes: Uint8Array<ArrayBuffer>): Piece {
    const decoder = this.#decoders.get(from) ?? new TextDecoder("utf-8", { ignoreBOM: true })
    this.#decoders.set(from, decoder)
    return { from, bytes, text: decoder.decode(bytes, { stream: true }) }
  }
}
