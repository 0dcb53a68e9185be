import type { Socket } from "node:net"

interface Closed {
  readonly code: number
  readonly reason: string
}

const finalBinary = 0x82
const finalText = 0x81
const close = 8

/** The client's end of a WebSocket whose head was answered: small messages, one frame each. */
export class WebSocketClient implements Disposable {
  readonly #socket: Socket
  #kept = Buffer.alloc(0)
  #isOver = false
  /** Of whoever waits for more. */
  #wake = (): void => undefined

  constructor(socket: Socket) {
    this.#socket = socket
    socket.on("data", (piece: Buffer) => {
      this.#kept = Buffer.concat([this.#kept, piece])
      this.#wake()
    })
    socket.on("close", () => {
      this.#isOver = true
      this.#wake()
    })
    socket.on("error", () => undefined)
    socket.resume()
  }

  send(text: string): void {
    this.#frame(finalText, Buffer.from(text))
  }

  sendBytes(bytes: Buffer): void {
    this.#frame(finalBinary, bytes)
  }

  /** The next message. */
  async next(): Promise<Buffer> {
    const { kind, payload } = await this.#next()
    if (kind === close) throw new Error(`it was closed: ${payload.subarray(2).toString()}`)
    return payload
  }

  /** All text up to one that has this in it. */
  async until(wanted: string): Promise<string> {
    let text = ""
    while (!text.includes(wanted)) text += (await this.next()).subarray(1).toString()
    return text
  }

  async ended(): Promise<Closed> {
    for (;;) {
      const { kind, payload } = await this.#next()
      if (kind === close) return { code: payload.readUInt16BE(), reason: payload.subarray(2).toString() }
    }
  }

  [Symbol.dispose](): void {
    this.#socket.destroy()
  }

  #frame(first: number, payload: Buffer): void {
    const mask = Buffer.from([1, 2, 3, 4])
    const length =
      payload.length < 126 ? [payload.length | 0x80] : [126 | 0x80, payload.length >> 8, payload.length & 0xff]
    const masked = payload.map((byte, at) => byte ^ (mask[at % 4] ?? 0))
    this.#socket.write(Buffer.concat([Buffer.from([first, ...length]), mask, masked]))
  }

  async #next(): Promise<{ kind: number; payload: Buffer }> {
    for (;;) {
      const frame = this.#taken()
      if (frame) return frame
      if (this.#isOver) throw new Error("it ended without a word")
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  #taken(): { kind: number; payload: Buffer } | undefined {
    const [first = 0, short = 0] = this.#kept
    const from = short < 126 ? 2 : short === 126 ? 4 : 10
    if (this.#kept.length < from) return undefined
    const length =
      short < 126 ? short : short === 126 ? this.#kept.readUInt16BE(2) : Number(this.#kept.readBigUInt64BE(2))
    if (this.#kept.length < from + length) return undefined
    const payload = this.#kept.subarray(from, from + length)
    this.#kept = this.#kept.subarray(from + length)
    return { kind: first & 0x0f, payload }
  }
}
