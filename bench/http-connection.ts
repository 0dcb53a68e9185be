import { once } from "node:events"
import { connect, type Socket } from "node:net"

/** A connection that sends the same request again and again, and reads no more of the answers than where they end: a client that costs little. */
export class HttpConnection implements Disposable {
  readonly #socket: Socket
  readonly #request: Buffer
  #waiting: { resolve(): void; reject(reason: Error): void } | undefined
  #head = ""
  /** Bytes of the answer that are still to come; undefined while its head is read. */
  #left: number | undefined

  private constructor(socket: Socket, request: Buffer) {
    this.#socket = socket
    this.#request = request
    socket.setNoDelay(true)
    socket.on("data", (bytes) => this.#receive(bytes))
    socket.on("close", () => this.#waiting?.reject(new Error("the connection closed")))
    socket.on("error", () => undefined)
  }

  static async open(port: number, request: string): Promise<HttpConnection> {
    const socket = connect(port, "127.0.0.1")
    await once(socket, "connect")
    return new HttpConnection(socket, Buffer.from(request))
  }

  /** Sends it; resolves when it is answered with 2xx. */
  ask(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
      this.#socket.write(this.#request)
    })
  }

  [Symbol.dispose](): void {
    this.#socket.destroy()
  }

  #receive(bytes: Buffer): void {
    if (this.#left === undefined) {
      this.#head += bytes.toString("latin1")
      const end = this.#head.indexOf("\r\n\r\n")
      if (end < 0) return
      if (!this.#head.startsWith("HTTP/1.1 2")) return this.#waiting?.reject(new Error(this.#head))
      const length = Number(/content-length: (\d+)/i.exec(this.#head)?.[1] ?? Number.NaN)
      if (Number.isNaN(length)) return this.#waiting?.reject(new Error(`no length: ${this.#head}`))
      this.#left = end + 4 + length - this.#head.length
    } else this.#left -= bytes.length
    if (this.#left > 0) return
    this.#head = ""
    this.#left = undefined
    this.#waiting?.resolve()
  }
}

/** Requests a second, over many connections at once. */
export async function requestsPerSecond(connections: readonly HttpConnection[], each: number): Promise<number> {
  const started = performance.now()
  await Promise.all(
    connections.map(async (connection) => {
      for (let turn = 0; turn < each; turn++) await connection.ask()
    }),
  )
  return (connections.length * each) / ((performance.now() - started) / 1000)
}

export function requestText(method: string, path: string, token: string, body?: string): string {
  const content = body === undefined ? "" : `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`
  const head = `${method} ${path} HTTP/1.1\r\nHost: localhost:${portMark}\r\nAuthorization: Bearer ${token}\r\n${content}`
  return `${head}\r\n${body ?? ""}`
}

/** Where the port goes, which has to be right for the host name to be served. */
export const portMark = "PORT"
