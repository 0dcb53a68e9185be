import { createServer, STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { errnoOf, faultCodes, type Fault } from "@warren/base/fault.ts"
import { askedOf, connectTargetOf } from "./asked.ts"
import type { Client, Fixed } from "./client.ts"
import { Denied } from "./denied.ts"
import { forward, outgoing } from "./http-forward.ts"
import { upgrade, upgradeHeaders } from "./http-upgrade.ts"
import type { Target } from "./host.ts"
import type { EgressLimits } from "./limits.ts"
import type { Routes } from "./routes.ts"

/** Answers a request that is meant for the runner itself. */
export type LocalHandler = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>

/** How an opened or refused tunnel is told, in the protocol it was asked for. */
export interface TunnelReply {
  accept(): void
  refuse(fault: Fault): void
}

interface FrontOptions {
  readonly routes: Routes
  readonly limits: EgressLimits
  readonly local: LocalHandler | undefined
  /** Opens a tunnel and carries it to its end. */
  tunnel(client: Client, target: Target, reply: TunnelReply): Promise<void>
  /** Writes down what went wrong, and says what the sandbox may know of it. */
  report(thrown: unknown, target: Target | undefined): Fault
}

/** Speaks HTTP with the sandbox: forwards requests, opens tunnels, hands the runner's own to the runner. */
export class HttpFront {
  readonly #options: FrontOptions
  readonly #server: Server
  readonly #clients = new WeakMap<Duplex, Client>()

  constructor(options: FrontOptions) {
    this.#options = options
    // It never listens: connections are handed to it, so its own timers do not run, and the client's deadlines do. To it, a
    // client that says its last is gone: on a Unix socket nothing else tells that a program was killed in mid-request.
    this.#server = createServer({ maxHeaderSize: options.limits.headerBytesMax, keepAliveTimeout: 0 })
    this.#server.on("request", (request, response) => void this.#request(request, response))
    this.#server.on("connect", (request: IncomingMessage, socket: Socket, head: Buffer) =>
      this.#connect(request, socket, head),
    )
    this.#server.on("upgrade", (request: IncomingMessage, socket: Socket, head: Buffer) =>
      this.#upgrade(request, socket, head),
    )
    this.#server.on("clientError", (error, socket) => this.#unreadable(error, socket))
  }

  /** From here on the connection speaks HTTP; with `fixed`, to one host only. */
  accept(client: Client, fixed?: Fixed): void {
    client.fixed = fixed
    this.#clients.set(client.socket, client)
    client.expect(this.#options.limits.handshakeMs)
    this.#server.emit("connection", client.socket)
    client.socket.resume()
  }

  async #request(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const client = this.#clients.get(request.socket)
    // What was read in one go with the request that ended the connection comes here all the same.
    if (!client || request.socket.destroyed) return void request.socket.destroy()
    if (client.begin() > this.#options.limits.pipelinedMax) {
      this.#options.report(new Denied("limit", "too many requests without waiting for answers"), client.fixed?.target)
      return void request.socket.destroy()
    }
    response.once("close", () => client.finish(this.#options.limits.keepAliveMs))
    let target = client.fixed?.target
    try {
      const asked = askedOf(request, target)
      target = asked.target
      if (!target) return await this.#answer(request, response, asked.path)
      const socket = client.takeSpare() ?? (await this.#options.routes.open(target, client.signal))
      const sent = outgoing(request, { target, path: asked.path, socket })
      await forward(request, response, sent).catch((cause: unknown) => {
        throw brokenBy(cause, client, socket)
      })
    } catch (thrown) {
      const fault = this.#options.report(thrown, target)
      if (response.headersSent) return void response.destroy()
      response.writeHead(faultCodes[fault.code].status, answerHeaders(fault)).end(answerText(fault))
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    if (!this.#options.local) throw new Denied("bad-request", "nothing answers here")
    request.url = path
    await this.#options.local(request, response)
  }

  #connect(request: IncomingMessage, socket: Socket, head: Buffer): void {
    const work = async (client: Client): Promise<void> => {
      let target: Target
      try {
        if (client.fixed) throw new Denied("bad-request", "a tunnel inside a tunnel")
        target = connectTargetOf(request)
      } catch (thrown) {
        return refuse(socket, this.#options.report(thrown, undefined))
      }
      await this.#options.tunnel(client, target, {
        accept: () => void socket.write("HTTP/1.1 200 Connection established\r\n\r\n"),
        refuse: (fault) => refuse(socket, fault),
      })
    }
    this.#take(socket, head, work)
  }

  #upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    const work = async (client: Client): Promise<void> => {
      let target = client.fixed?.target
      try {
        const asked = askedOf(request, target)
        target = asked.target
        if (!target) throw new Denied("bad-request", "nothing is upgraded here")
        const route = client.takeSpare() ?? (await this.#options.routes.open(target, client.signal))
        const sent = outgoing(request, { target, path: asked.path, socket: route }, upgradeHeaders(request))
        await upgrade(socket, sent).catch((cause: unknown) => {
          throw brokenBy(cause, client, route)
        })
      } catch (thrown) {
        refuse(socket, this.#options.report(thrown, target))
      }
    }
    this.#take(socket, head, work)
  }

  /** The parser has let go of the socket; what it had read too far goes back. */
  #take(socket: Socket, head: Buffer, work: (client: Client) => Promise<void>): void {
    const client = this.#clients.get(socket)
    if (!client) return void socket.destroy()
    client.relax()
    socket.pause()
    if (head.length > 0) socket.unshift(head)
    work(client).catch((thrown: unknown) => {
      this.#options.report(thrown, undefined)
      socket.destroy()
    })
  }

  #unreadable(error: Error, socket: Duplex): void {
    // Cut by us, or by who left without reading its answer.
    if (socket.destroyed) return
    const isLong = errnoOf(error) === "HPE_HEADER_OVERFLOW"
    const message = isLong ? "the head of the request is too long" : "the request is not HTTP"
    const fault = this.#options.report(new Denied("bad-request", message), this.#clients.get(socket)?.fixed?.target)
    refuse(socket, fault, isLong ? 431 : 400)
  }
}

/** A client that left is no news; a connection that the policy cut says so; anything else is a host that went away. */
function brokenBy(cause: unknown, client: Client, socket: Socket): unknown {
  if (client.signal.aborted) return client.signal.reason
  return socket.errored instanceof Denied
    ? socket.errored
    : new Denied("unreachable", "the connection broke", { cause })
}

function refuse(socket: Duplex, fault: Fault, status: number = faultCodes[fault.code].status): void {
  const text = answerText(fault)
  const headers = Object.entries({ ...answerHeaders(fault), "content-length": Buffer.byteLength(text) })
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join("")
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines}\r\n${text}`, () => socket.destroy())
}

function answerHeaders(fault: Fault): Record<string, string> {
  const reason = fault instanceof Denied ? fault.reason : fault.code
  return { "content-type": "text/plain; charset=utf-8", "x-warren-denied": reason, connection: "close" }
}

function answerText(fault: Fault): string {
  return `warren egress: ${fault.message}${fault.hint ? ` (${fault.hint})` : ""}\n`
}
