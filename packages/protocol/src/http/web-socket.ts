import type { IncomingMessage } from "node:http"
import type { Duplex } from "node:stream"
import { upgradeWebSocket, type ServerType, type WebSocketServerLike } from "@hono/node-server"
import { Fault, messageOf } from "@warren/base/fault.ts"
import { decodeJson, frameLimits, streamTags } from "@warren/base/frame.ts"
import { WebSocketServer, type RawData, type WebSocket } from "ws"
import type { Log } from "@warren/base/log.ts"
import type { Context as HonoContext } from "hono"
import type { Stream } from "../contract.ts"
import type { Conversation } from "../conversation.ts"
import { ServedStream, type Line } from "../rpc/served-stream.ts"
import { rpcLimits } from "../rpc/wire.ts"
import { faultTeller, type Asked } from "./asked.ts"
import { heartbeat } from "./heartbeat.ts"

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
  return upgraded(asked.c, (socket) => void new Talk(socket, asked, given))
}

/**
 * The socket a request becomes, without what led to it: the helper's own listeners would copy every message and keep the request,
 * its headers and everybody who looked at it for as long as the socket is open.
 */
export async function upgraded(c: HonoContext, take: (socket: WebSocket) => void): Promise<Response> {
  const upgrade = upgradeWebSocket(() => ({
    onOpen(_, { raw }) {
      const socket = raw as unknown as WebSocket
      take(socket)
      heartbeat(socket)
      const ours = new Map(helperEvents.map((event) => [event, socket.listeners(event)]))
      // It adds its listeners right after this.
      queueMicrotask(() => {
        for (const [event, kept] of ours)
          for (const listener of socket.listeners(event) as Listener[])
            if (!kept.includes(listener)) socket.off(event, listener)
      })
    },
  }))
  const response = await upgrade(c as Parameters<typeof upgrade>[0], () => Promise.resolve())
  return response ?? new Response(null, { status: 426 })
}

const helperEvents = ["message", "close", "error"] as const
type Listener = (...told: unknown[]) => void

class Talk {
  readonly #socket: WebSocket
  readonly #log: Log
  readonly #path: string
  readonly #told: ReturnType<typeof faultTeller>
  /** Let go of once it is asked: the request is not needed for as long as the socket is open. */
  #ask: ((input: object) => Promise<AnyConversation>) | undefined
  readonly #stop = new AbortController()
  readonly #served: ServedStream
  readonly #inputTimer: NodeJS.Timeout
  #isStarted = false

  constructor(socket: WebSocket, asked: Asked<Stream>, given: Record<string, unknown>) {
    this.#socket = socket
    this.#log = asked.log
    this.#path = asked.c.req.path
    this.#told = faultTeller(asked.c)
    this.#ask = askerOf(asked, given, this.#stop.signal)
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
    const input = decodeJson(data)
    this.#isStarted = true
    clearTimeout(this.#inputTimer)
    this.#run(this.#begin(input)).then(
      () => this.#socket.close(1000),
      (thrown: unknown) => this.#fail(thrown),
    )
  }

  /** Not a part of what waits for the end: a function that is suspended keeps all it ever held, the request too. */
  #begin(input: object): Promise<AnyConversation> | undefined {
    const ask = this.#ask
    this.#ask = undefined
    return ask?.(input)
  }

  async #run(asking: Promise<AnyConversation> | undefined): Promise<void> {
    try {
      const conversation = await asking
      if (conversation) await this.#served.run(conversation, this.#stop.signal)
    } finally {
      this.#served.close()
    }
  }

  #fail(thrown: unknown): void {
    clearTimeout(this.#inputTimer)
    const fault = Fault.from(thrown)
    if (fault.code === "internal") {
      const stack = thrown instanceof Error ? thrown.stack : undefined
      this.#log("error", "http.bug", { path: this.#path, message: messageOf(thrown), stack })
    }
    if (this.#socket.readyState !== this.#socket.OPEN) return
    this.#socket.send(JSON.stringify({ fault: this.#told(fault) }))
    this.#socket.close(1011)
  }
}

type AnyConversation = Conversation<unknown, unknown>

/** Made out here: a closure keeps everything that any closure beside it needs. */
function askerOf(asked: Asked<Stream>, given: Record<string, unknown>, signal: AbortSignal) {
  return async (input: object) => (await asked.ask(asked.name, { ...input, ...given }, { signal })) as AnyConversation
}

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
