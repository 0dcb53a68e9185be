import type { Duplex } from "node:stream"
import { Fault } from "./fault.ts"
import { isRecycling } from "./unix-socket.ts"
import { encodeJson, FrameDecoder, streamHeader, type OnBody, type OnBytes, type StreamTag } from "./frame.ts"

export interface FrameChannelHandlers {
  /** One whole frame body. Its memory may be used again after the call: copy what is kept. */
  body(body: Buffer): void
  /** Bytes of a stream frame, as they come. Without this, stream frames arrive whole, as bodies. */
  bytes?(tag: StreamTag, bytes: Buffer): void
  /** Called once, when the channel is over: by the peer, by `close`, or by a fault. */
  end(fault: Fault | undefined): void
}

interface FrameChannelLimits {
  /** A peer that lets more than this pile up unread is cut off. */
  readonly unsentBytesMax?: number
}

const defaultUnsentBytesMax = 16 * 1024 * 1024

/** Frames over a socket or any duplex stream, with the peer's pace visible to the sender. */
export class FrameChannel implements Disposable {
  readonly #stream: Duplex
  readonly #decoder = new FrameDecoder()
  readonly #handlers: FrameChannelHandlers
  readonly #onBody: OnBody
  readonly #onBytes: OnBytes | undefined
  readonly #unsentBytesMax: number
  #hasEnded = false
  #isCorked = false
  #room: { promise: Promise<void>; resolve: () => void } | undefined

  constructor(stream: Duplex, handlers: FrameChannelHandlers, limits: FrameChannelLimits = {}) {
    this.#stream = stream
    this.#handlers = handlers
    this.#onBody = (body) => {
      if (!this.#hasEnded) handlers.body(body)
    }
    const { bytes } = handlers
    this.#onBytes = bytes && ((tag, piece) => void (this.#hasEnded || bytes(tag, piece)))
    this.#unsentBytesMax = limits.unsentBytesMax ?? defaultUnsentBytesMax
    stream.on("data", (chunk: Buffer) => this.#receive(chunk))
    stream.on("drain", () => this.#giveRoom())
    stream.on("end", () => this.#peerEnded())
    stream.on("error", (cause: Error) => this.#end(new Fault("unavailable", "the connection broke", { cause })))
    stream.on("close", () => this.#end(undefined))
  }

  get isOpen(): boolean {
    return !this.#hasEnded && !this.#stream.destroyed
  }

  /** Whether the peer keeps up. A sender that can wait does so, with `room`. */
  get hasRoom(): boolean {
    return !this.#stream.writableNeedDrain
  }

  /** Resolves when there is room, or when the channel is over. */
  room(): Promise<void> {
    if (this.#hasEnded || this.hasRoom) return Promise.resolve()
    if (!this.#room) {
      let resolve = (): void => undefined
      const promise = new Promise<void>((done) => (resolve = done))
      this.#room = { promise, resolve }
    }
    return this.#room.promise
  }

  send(value: object): void {
    this.#write(encodeJson(value))
  }

  sendBytes(tag: StreamTag, bytes: Uint8Array): void {
    this.#write(streamHeader(tag, bytes.length), bytes)
  }

  /** The same for bytes whose memory will be used again: resolves when it may be, or when the channel is over. */
  lendBytes(tag: StreamTag, bytes: Uint8Array): Promise<void> {
    if (bytes.length === 0 || this.#hasEnded || this.#stream.writableEnded) return Promise.resolve()
    return new Promise((resolve) => {
      this.#cork()
      this.#stream.write(streamHeader(tag, bytes.length))
      this.#stream.write(bytes, () => resolve())
    })
  }

  /** Stops reading; the kernel then holds the peer back. */
  pause(): void {
    this.#stream.pause()
  }

  resume(): void {
    this.#stream.resume()
  }

  /** Sends what is waiting, then closes. */
  finish(): void {
    if (!this.#hasEnded) this.#stream.end()
  }

  close(fault?: Fault): void {
    this.#stream.destroy()
    this.#end(fault)
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #write(...pieces: Uint8Array[]): void {
    if (this.#hasEnded || this.#stream.writableEnded) return
    this.#cork()
    for (const piece of pieces) this.#stream.write(piece)
    if (this.#stream.writableLength > this.#unsentBytesMax) {
      this.close(new Fault("limit", "the peer does not read", { hint: "read, or use a connection per stream" }))
    }
  }

  /** Everything sent in one turn of the event loop, whatever connection it answers, leaves in one system call. */
  #cork(): void {
    if (this.#isCorked) return
    this.#isCorked = true
    this.#stream.cork()
    setImmediate(() => {
      this.#isCorked = false
      this.#stream.uncork()
    })
  }

  #receive(chunk: Buffer): void {
    if (this.#hasEnded) return
    try {
      this.#decoder.push(chunk, this.#onBody, this.#onBytes)
      // Bodies are done with; stream bytes are given back by whoever reads them.
      if (!this.#onBytes && isRecycling(this.#stream)) this.#stream.recycle(chunk.buffer)
    } catch (thrown) {
      this.close(Fault.from(thrown))
    }
  }

  #peerEnded(): void {
    const isCut = this.#decoder.pendingBytes > 0
    this.close(isCut ? new Fault("unavailable", "the connection ended inside a frame") : undefined)
  }

  #giveRoom(): void {
    this.#room?.resolve()
    this.#room = undefined
  }

  #end(fault: Fault | undefined): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#giveRoom()
    this.#handlers.end(fault)
  }
}
