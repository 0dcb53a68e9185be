import type { Duplex } from "node:stream"
import type { Clock } from "@warren/base/clock.ts"
import { Fault, messageOf } from "@warren/base/fault.ts"
import { WebSocket, WebSocketServer, type RawData } from "ws"
import { hubLimits, replaced } from "./frames.ts"
import type { Wire } from "./reliable-link.ts"
import { readUpgrade, type Upgrade } from "./upgrade.ts"

export interface Closed {
  readonly code: number
  readonly reason: string
}

/** A WebSocket between a supervisor and a hub, on any stream. It ends when the other end has been silent for too long. */
export class HubSocket implements Wire {
  readonly closed: Promise<Closed>
  readonly #socket: WebSocket
  readonly #clock: Clock
  readonly #over = new AbortController()
  #heardAt: number
  #hear: ((text: string) => void) | undefined
  #early: string[] = []

  constructor(socket: WebSocket, clock: Clock) {
    this.#socket = socket
    this.#clock = clock
    this.#heardAt = clock.monotonic()
    this.closed = new Promise((resolve) => {
      socket.once("close", (code, reason) => {
        this.#over.abort()
        resolve({ code, reason: reason.toString() })
      })
    })
    // What is wrong with a frame closes the socket by itself.
    socket.on("error", () => undefined)
    socket.on("message", (data, isBinary) => this.#received(data, isBinary))
    void this.#watch()
  }

  /** The other end begins: it is the client of the WebSocket, whoever opened the stream. */
  static async answer(stream: Duplex, options: AnswerOptions): Promise<HubSocket> {
    const { request, head } = await readUpgrade(stream)
    const refusal = options.admit(request)
    if (refusal) {
      stream.end(`HTTP/1.1 ${refusal}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
      throw new Fault("unauthenticated", `a supervisor was turned away: ${refusal}`)
    }
    return new Promise((resolve) => {
      server.handleUpgrade(request as never, stream, head, (socket) => {
        resolve(new HubSocket(socket, options.clock))
        // It was paused after its head.
        stream.resume()
      })
    })
  }

  static ask(stream: Duplex, { token, clock }: { readonly token: string; readonly clock: Clock }): Promise<HubSocket> {
    return new Promise((resolve, reject) => {
      const url = `ws://hub/ws?role=runner&token=${encodeURIComponent(token)}`
      const socket = new WebSocket(url, {
        createConnection: () => stream as never,
        maxPayload: hubLimits.frameBytesMax,
        handshakeTimeout: hubLimits.resumeMs,
        perMessageDeflate: false,
      })
      socket.once("open", () => resolve(new HubSocket(socket, clock)))
      socket.once("unexpected-response", (_, { statusCode }) => {
        stream.destroy()
        reject(new Fault("unauthenticated", `the hub answered ${statusCode}`))
      })
      socket.once("error", (cause) => reject(new Fault("unavailable", `no hub: ${messageOf(cause)}`, { cause })))
    })
  }

  send(text: string): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(text)
  }

  close(code: number, reason: string): void {
    this.#socket.close(code, reason)
  }

  /** Another has taken its place: whoever is at the other end leaves. */
  replace(): void {
    this.close(replaced.code, replaced.reason)
  }

  cut(): void {
    this.#socket.terminate()
  }

  /** What came before somebody listened comes first. */
  listen(hear: (text: string) => void): void {
    this.#hear = hear
    for (const text of this.#early.splice(0)) hear(text)
  }

  #received(data: RawData, isBinary: boolean): void {
    this.#heardAt = this.#clock.monotonic()
    if (isBinary) return this.close(1003, "messages are text")
    const text = textOf(data)
    if (this.#hear) this.#hear(text)
    else if (this.#early.length < earlyMax) this.#early.push(text)
    else this.close(1002, "the greeting comes first")
  }

  async #watch(): Promise<void> {
    while (!this.#over.signal.aborted) {
      const quietMs = this.#clock.monotonic() - this.#heardAt
      if (quietMs >= hubLimits.silenceMs) return this.cut()
      await this.#clock.sleep(hubLimits.silenceMs - quietMs, this.#over.signal).catch(() => undefined)
    }
  }
}

export interface AnswerOptions {
  readonly clock: Clock
  /** A status line for whoever is not let in. */
  admit(request: Upgrade): string | undefined
}

/** What is said before the other side listens: a greeting. */
const earlyMax = 8
const server = new WebSocketServer({ noServer: true, maxPayload: hubLimits.frameBytesMax, perMessageDeflate: false })

function textOf(data: RawData): string {
  if (Buffer.isBuffer(data)) return data.toString()
  return (Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data)).toString()
}
