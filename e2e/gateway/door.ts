import { request as httpRequest, type IncomingMessage } from "node:http"
import { connect, type Socket } from "node:net"

export interface Answer {
  readonly status: number
  readonly headers: IncomingMessage["headers"]
  readonly raw: readonly string[]
  readonly trailers: NodeJS.Dict<string>
  readonly body: Buffer
}

export interface Ask {
  readonly method?: string
  readonly host?: string
  readonly headers?: Readonly<Record<string, string | string[]>>
  readonly body?: string | Buffer
  /** The address it comes from: any of loopback's. */
  readonly from?: string
}

/** The public door as a browser or a stranger comes to it, by any host name. */
export class Door {
  readonly port: number

  constructor(port: number) {
    this.port = port
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
  open(path: string, { method = "GET", host, headers = {}, body, from }: Ask): ReturnType<typeof httpRequest> {
    const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) }
    const place = { host: "127.0.0.1", port: this.port, ...(from === undefined ? {} : { localAddress: from }) }
    const all = { host: host ?? `localhost:${this.port}`, ...length, ...headers }
    return httpRequest({ ...place, path, method, headers: all, agent: false })
  }

  /** What a raw text is answered with, up to the end of the connection. */
  say(text: string, from = "127.0.0.1"): Promise<string> {
    return new Promise((settle, reject) => {
      const socket = connect({ host: "127.0.0.1", port: this.port, localAddress: from }, () => socket.write(text))
      let answer = ""
      socket.setEncoding("latin1").on("data", (piece: string) => (answer += piece))
      socket.on("error", reject).on("close", () => settle(answer))
    })
  }

  /** Opens a WebSocket by hand; resolves with the head of the answer, and the connection after it. */
  upgrade(path: string, asked: Ask & { readonly protocol?: string } = {}): Promise<{ head: string; socket: Socket }> {
    const { host = `localhost:${this.port}`, headers = {}, protocol, from = "127.0.0.1" } = asked
    const lines = Object.entries({
      ...{ host, connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" },
      "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
      ...(protocol === undefined ? {} : { "sec-websocket-protocol": protocol }),
      ...headers,
    }).flatMap(([name, value]) => (Array.isArray(value) ? value : [value]).map((one) => `${name}: ${one}\r\n`))
    return new Promise((settle, reject) => {
      const place = { host: "127.0.0.1", port: this.port, localAddress: from }
      const socket = connect(place, () => socket.write(`GET ${path} HTTP/1.1\r\n${lines.join("")}\r\n`))
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
}

/** A session's preview at a host name of its own. */
export function ownHost(session: string, target: string | number, port: number): string {
  return `${target}-${session.slice("ses_".length)}.warren.localhost:${port}`
}
