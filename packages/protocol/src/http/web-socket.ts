import type { IncomingMessage } from "node:http"
import type { Duplex } from "node:stream"
import { upgradeWebSocket, type ServerType, type WebSocketServerLike } from "@hono/node-server"
import { Fault, messageOf } from "@warren/base/fault.ts"
import { decodeJson, frameLimits, streamTags } from "@warren/base/frame.ts"
import { WebSocketServer, type RawData, type WebSocket } from "ws"
import type { Stream } from "../contract.ts"
import type { Conversation } from "../conversation.ts"
import { ServedStream, type Line } from "../rpc/served-stream.ts"
import { rpcLimits } from "../rpc/wire.ts"
import { toldFault, type Asked } from "./asked.ts"

/** What the HTTP server needs to hand WebSockets to `routes`. Disposing it cuts those that are open. */
export class WebSockets implements Disposable {
  readonly server: WebSocketServerLike
  readonly #asked = new Set<Duplex>()
  readonly #server = new WebSocketServer({ noServer: true, maxPayload: frameLimits.jsonBytesMax })

  constructor() {
    // The same thing; the two packages write down its optional fields differently.
    this.server = this.#server as unknown as WebSocketServerLike
  }

  /**
   * Answers what asks for an upgrade to something else, which would wait for ever otherwise; and remembers who asked, because a
   * server does not count such connections as its own and would never end while one is open.
   */
  guard(server: ServerType): void {
    const [upgrade] = server.listeners("upgrade") as ((...asked: Upgrade) => void)[]
    server.removeAllListeners("upgrade")
    server.on("upgrade", (...[request, socket, head]: Upgrade) => {
      this.#asked.add(socket)
      socket.once("close", () => this.#asked.delete(socket))
      if (request.headers.upgrade?.toLowerCase() === "websocket") return upgrade?.call(server, request, socket, head)
      socket.on("error", () => undefined)
      socket.end(request.method === "HEAD" ? refusedHead : refusedHead + refusal)
    })
  }

  [Symbol.dispose](): void {
    for (const socket of this.#server.clients) socket.terminate()
    for (const socket of this.#asked) socket.destroy()
    this.#server.close()
  }
}

type Upgrade = [request: IncomingMessage, socket: Duplex, head: Buffer]

const refusal = JSON.stringify({ error: { code: "invalid", message: "there is nothing here to upgrade to" } })
const refusedHead = `HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${refusal.length}\r\n\r\n`

/**
 * A stream on a WebSocket. The first message is its input. After that, text messages are its messages and binary ones its
 * bytes, behind the tag that frames have. It closes with 1000 at the end, and after `{"fault":…}` with 1011.
 */
export async function webSocket(asked: Asked<Stream>, given: Record<string, unknown>): Promise<Response> {
  const upgrade = upgradeWebSocket(() => ({
    onOpen: (_, { raw }) => void new Talk(raw as unknown as WebSocket, asked, given),
  }))
  const response = await upgrade(asked.c as Parameters<typeof upgrade>[0], () => Promise.resolve())
  return response ?? new Response(null, { status: 426 })
}

class Talk {
  readonly #socket: WebSocket
  readonly #asked: Asked<Stream>
  readonly #given: Record<string, unknown>
  readonly #stop = new AbortController()
  readonly #served: ServedStream
  readonly #inputTimer: NodeJS.Timeout
  #isStarted = false

  constructor(socket: WebSocket, asked: Asked<Stream>, given: Record<string, unknown>) {
    this.#socket = socket
    this.#asked = asked
    this.#given = given
    this.#served = new ServedStream(lineOf(socket), asked.entry)
    this.#inputTimer = setTimeout(() => {
      this.#fail(new Fault("timeout", "the first message, with the input, did not come"))
    }, rpcLimits.helloMs)
    socket.on("message", (data, isBinary) => this.#receive(bytesOf(data), isBinary))
    // What is wrong with a frame closes the socket by itself.
    socket.on("error", () => undefined)
    socket.on("close", () => {
      clearTimeout(this.#inputTimer)
      this.#served.close()
      this.#stop.abort(new Fault("cancelled", "the caller went away"))
    })
  }

  #receive(data: Buffer, isBinary: boolean): void {
    try {
      if (!this.#isStarted) return this.#start(data, isBinary)
      if (!isBinary) return this.#served.receive(decodeJson(data), data.length)
      if (data[0] !== streamTags.stdin) throw new Fault("invalid", "bytes from a caller begin with the tag 1")
      this.#served.receiveBytes(data.subarray(1))
    } catch (thrown) {
      // What was started fails with this as its reason; what was not fails here.
      this.#stop.abort(Fault.from(thrown))
      if (!this.#isStarted) this.#fail(thrown)
      this.#isStarted = true
    }
  }

  #start(data: Buffer, isBinary: boolean): void {
    if (isBinary) throw new Fault("invalid", "the first message is the input, as text")
    const input = { ...decodeJson(data), ...this.#given }
    this.#isStarted = true
    clearTimeout(this.#inputTimer)
    this.#run(input).then(
      () => this.#socket.close(1000),
      (thrown: unknown) => this.#fail(thrown),
    )
  }

  async #run(input: object): Promise<void> {
    const { ask, name } = this.#asked
    try {
      const conversation = await (ask(name, input, { signal: this.#stop.signal }) as Promise<AnyConversation>)
      await this.#served.run(conversation, this.#stop.signal)
    } finally {
      this.#served.close()
    }
  }

  #fail(thrown: unknown): void {
    clearTimeout(this.#inputTimer)
    const fault = Fault.from(thrown)
    if (fault.code === "internal") {
      const stack = thrown instanceof Error ? thrown.stack : undefined
      this.#asked.log("error", "http.bug", { path: this.#asked.c.req.path, message: messageOf(thrown), stack })
    }
    if (this.#socket.readyState !== this.#socket.OPEN) return
    this.#socket.send(JSON.stringify({ fault: toldFault(this.#asked.c, fault) }))
    this.#socket.close(1011)
  }
}

type AnyConversation = Conversation<unknown, unknown>

function lineOf(socket: WebSocket): Line {
  // Resolves when the kernel has it, and also when it never will.
  const send = (data: Buffer | string): Promise<void> => new Promise((resolve) => socket.send(data, () => resolve()))
  return {
    get isOpen() {
      return socket.readyState === socket.OPEN
    },
    opened: () => undefined,
    say: (message) => send(JSON.stringify(message)),
    lend: (tag, bytes) => send(Buffer.concat([Buffer.from([tag]), bytes])),
    held: () => socket.ping(),
    pause: () => socket.pause(),
    resume: () => socket.resume(),
  }
}

function bytesOf(data: RawData): Buffer {
  if (Buffer.isBuffer(data)) return data
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data)
}
