const headEnd = "\r\n\r\n"
/** More is no head of a request to become a WebSocket. */
const headCharsMax = 16 * 1024

/** Follows the bytes of one way of a connection: whether it is a WebSocket, and whether the last byte was the last of a frame. */
export class FrameEdge {
  #head = ""
  #isHead = true
  #isSocket = false
  #header: number[] = []
  #left = 0

  /** The other way of a WebSocket says that it is one, too. */
  get isSocket(): boolean {
    return this.#isSocket
  }

  get isInside(): boolean {
    return this.#isSocket && (this.#header.length > 0 || this.#left > 0)
  }

  take(bytes: Buffer): void {
    let at = this.#isHead ? this.#takeHead(bytes) : 0
    while (this.#isSocket && at < bytes.length) at = this.#takeFrame(bytes, at)
  }

  /** Where what follows the head begins. */
  #takeHead(bytes: Buffer): number {
    const before = this.#head.length
    this.#head += bytes.toString("latin1")
    const end = this.#head.indexOf(headEnd)
    if (end < 0 && this.#head.length <= headCharsMax) return bytes.length
    this.#isHead = false
    this.#isSocket = end >= 0 && /^upgrade: websocket/im.test(this.#head.slice(0, end))
    this.#head = ""
    return Math.max(0, end + headEnd.length - before)
  }

  #takeFrame(bytes: Buffer, at: number): number {
    if (this.#left > 0) {
      const taken = Math.min(this.#left, bytes.length - at)
      this.#left -= taken
      return at + taken
    }
    this.#header.push(bytes[at] ?? 0)
    const length = headerBytes(this.#header)
    if (this.#header.length === length) {
      this.#left = payloadBytes(Buffer.from(this.#header))
      this.#header = []
    }
    return at + 1
  }
}

const longer: Readonly<Record<number, number>> = { 126: 2, 127: 8 }

/** As far as is known of what has come of it. */
function headerBytes([, second]: readonly number[]): number {
  if (second === undefined) return 2
  const maskBytes = (second & 0x80) === 0 ? 0 : 4
  return 2 + (longer[second & 0x7f] ?? 0) + maskBytes
}

function payloadBytes(header: Buffer): number {
  const short = (header[1] ?? 0) & 0x7f
  if (short === 126) return header.readUInt16BE(2)
  return short === 127 ? Number(header.readBigUInt64BE(2)) : short
}
