import { request as httpRequest, type ClientRequest, type IncomingMessage } from "node:http"
import { connect, type Socket } from "node:net"

export interface Answer<B = Buffer> {
  readonly status: number
  readonly headers: IncomingMessage["headers"]
  readonly raw: readonly string[]
  readonly trailers: NodeJS.Dict<string>
  readonly body: B
}

export interface Ask {
  readonly method?: string
  readonly host?: string
  readonly headers?: Readonly<Record<string, string | string[]>>
  readonly body?: string | Buffer
  /** The address it comes from: any of loopback's. */
  readonly from?: string
}

/** Where a door is: a port of this machine, or a socket. */
type Place = { readonly port: number } | { readonly socketPath: string }

/** A door as a browser or a stranger comes to it, by any host name, and with any bytes. */
export class HttpDoor {
  readonly #place: Place
  readonly #host: string

  /** `host`: the name it is asked for by unless another is said. */
  constructor(place: Place, host: string) {
    this.#place = place
    this.#host = host
  }

  get(path: string, asked: Ask = {}): Promise<Answer> {
    return new Promise((settle, reject) => {
      const sent = this.open(path, asked)
      sent.on("error", reject)
      sent.on("response", (incoming: IncomingMessage) => {
        const pieces: Buffer[] = []
        incoming.on("data", (piece: Buffer) => pieces.push(piece))
        incoming.on("error", reject)
        incoming.on("end", () =>
          settle({
            ...{ status: incoming.statusCode ?? 0, headers: incoming.headers, raw: incoming.rawHeaders },
            ...{ trailers: incoming.trailers, body: Buffer.concat(pieces) },
          }),
        )
      })
      sent.end(asked.body)
    })
  }

  /** The request itself, for what does not end. */
  open(path: string, { method = "GET", host = this.#host, headers = {}, body, from }: Ask): ClientRequest {
    const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) }
    const place = "port" in this.#place ? { host: loopback, port: this.#place.port } : this.#place
    const came = from === undefined ? {} : { localAddress: from }
    return httpRequest({ ...place, ...came, path, method, headers: { host, ...length, ...headers }, agent: false })
  }

  /** What a raw text is answered with, up to the end of the connection. */
  say(text: string, from?: string): Promise<string> {
    return new Promise((settle, reject) => {
      const socket = this.#connect(from, text)
      let answer = ""
      socket.setEncoding("latin1").on("data", (piece: string) => (answer += piece))
      socket.on("error", reject).on("close", () => settle(answer))
    })
  }

  /** Opens a WebSocket by hand; resolves with the head of the answer, and the connection after it. */
  upgrade(path: string, asked: Ask & { readonly protocol?: string } = {}): Promise<{ head: string; socket: Socket }> {
    const { host = this.#host, headers = {}, protocol, from } = asked
    const lines = Object.entries({
      ...{ host, connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" },
      "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
      ...(protocol === undefined ? {} : { "sec-websocket-protocol": protocol }),
      ...headers,
    }).flatMap(([name, value]) => (Array.isArray(value) ? value : [value]).map((one) => `${name}: ${one}\r\n`))
    return new Promise((settle, reject) => {
      const socket = this.#connect(from, `GET ${path} HTTP/1.1\r\n${lines.join("")}\r\n`)
      let kept = Buffer.alloc(0)
      const hear = (piece: Buffer): void => {
        kept = Buffer.concat([kept, piece])
        const end = kept.indexOf("\r\n\r\n")
        if (end < 0) return
        socket.off("data", hear).pause()
        if (kept.length > end + 4) socket.unshift(kept.subarray(end + 4))
        settle({ head: kept.subarray(0, end).toString(), socket })
      }
      socket.on("data", hear).on("error", reject)
    })
  }

  #connect(from: string | undefined, text: string): Socket {
    const place =
      "port" in this.#place
        ? { host: loopback, port: this.#place.port, localAddress: from ?? loopback }
        : { path: this.#place.socketPath }
    const socket = connect(place, () => socket.write(text))
    return socket
  }
}

const loopback = "127.0.0.1"
