/** The beginning and the end of something long: what is between is counted, and left where it is. */
export class Excerpt {
  readonly #head: Buffer[] = []
  #tail: Buffer[] = []
  #headBytes = 0
  #tailBytes = 0
  readonly #half: number
  bytes = 0

  constructor(bytesMax: number) {
    this.#half = Math.max(1, Math.floor(bytesMax / 2))
  }

  add(piece: Uint8Array): void {
    this.bytes += piece.length
    const toHead = piece.subarray(0, this.#half - this.#headBytes)
    if (toHead.length > 0) this.#head.push(Buffer.from(toHead))
    this.#headBytes += toHead.length
    const toTail = piece.subarray(toHead.length)
    if (toTail.length === 0) return
    this.#tail.push(Buffer.from(toTail))
    this.#tailBytes += toTail.length
    // Now and then: joining at every piece would copy it all each time.
    if (this.#tailBytes > this.#half * 2) this.#shorten()
  }

  get left(): number {
    return this.bytes - this.#headBytes - Math.min(this.#tailBytes, this.#half)
  }

  /** How much of the beginning is shown: what follows is read from here. */
  get headBytes(): number {
    return this.#headBytes
  }

  /** `between`: what is said in the place of what is left out. */
  text(between: string): string {
    this.#shorten()
    const tail = Buffer.concat(this.#tail)
    if (this.left === 0) return Buffer.concat([...this.#head, tail]).toString()
    return `${Buffer.concat(this.#head).toString()}\n${between}\n${tail.toString()}`
  }

  #shorten(): void {
    const last = Buffer.concat(this.#tail).subarray(-this.#half)
    this.#tail = [Buffer.from(last)]
    this.#tailBytes = last.length
  }
}

/** How many of these bytes are whole characters of UTF-8: one that was cut in two belongs to what follows. */
export function wholeCharacters(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (byte < 0x80) return bytes.length
    if (byte >= 0xc0) {
      const needs = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
      return needs > back ? bytes.length - back : bytes.length
    }
  }
  return bytes.length
}
