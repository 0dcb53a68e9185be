import type { IncomingMessage } from "node:http"
import type { Duplex } from "node:stream"
import { WebSocketServer, type RawData, type WebSocket } from "ws"

interface AcceptOptions {
  /** What is spoken; agreed on when the client offers it, and left out when it offers nothing. */
  readonly protocol: string
  readonly messageBytesMax: number
}

/** A WebSocket as plain messages, each side as fast as the other takes them. */
export class MessageSocket implements Disposable {
  readonly #socket: WebSocket
  readonly #kept: Buffer[] = []
  #isOver = false
  #wake: () => void = () => undefined

  private constructor(socket: WebSocket) {
    this.#socket = socket
    socket.on("message", (data) => {
      this.#kept.push(bytesOf(data))
      // One is enough: the next waits in the kernel.
      socket.pause()
      this.#wake()
    })
    // What is wrong with a frame closes the socket by itself.
    socket.on("error", () => undefined)
    socket.on("close", () => {
      this.#isOver = true
      this.#wake()
    })
  }

  /** Answers a request for a WebSocket. The connection is the socket's from then on. */
  static accept(
    request: IncomingMessage,
    connection: Duplex,
    head: Buffer,
    { protocol, messageBytesMax }: AcceptOptions,
  ): Promise<MessageSocket> {
    const handleProtocols = (offered: Set<string>): string | false => (offered.has(protocol) ? protocol : false)
    const server = new WebSocketServer({ noServer: true, maxPayload: messageBytesMax, handleProtocols })
    return new Promise((resolve, reject) => {
      connection.once("close", () => reject(new Error("the client is gone")))
      server.handleUpgrade(request, connection, head, (socket) => resolve(new MessageSocket(socket)))
      connection.resume()
    })
  }

  /** Undefined when it is over. */
  async next(): Promise<Buffer | undefined> {
    for (;;) {
      const message = this.#kept.shift()
      if (message !== undefined) return message
      if (this.#isOver) return undefined
      this.#socket.resume()
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  /** Resolves when the kernel has it, and also when it never will. */
  send(...pieces: readonly Uint8Array[]): Promise<void> {
    const bytes = Buffer.concat(pieces)
    return new Promise((resolve) => this.#socket.send(bytes, { binary: true }, () => resolve()))
  }

  get isOver(): boolean {
    return this.#isOver
  }

  close(code: number, reason: string): void {
    this.#socket.close(code, Buffer.from(reason).subarray(0, reasonBytesMax).toString())
    this.#socket.resume()
  }

  [Symbol.dispose](): void {
    this.#socket.terminate()
  }
}

/** What a closing frame has room for. */
const reasonBytesMax = 120

function bytesOf(data: RawData): Buffer {
  if (Buffer.isBuffer(data)) return data
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data)
}
