import { chmod, chown } from "node:fs/promises"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { errnoOf, Fault } from "@warren/base/fault.ts"
import { listenAt } from "@warren/base/unix-socket.ts"
import { connectPort } from "@warren/drivers/init/port.ts"
import type { GatewayClaims } from "@warren/protocol/gateway-token.ts"
import { MessageSocket } from "@warren/protocol/http/message-socket.ts"
import { TerminalName } from "@warren/protocol/user-plane/terminals.ts"
import { valuesOf } from "../egress/headers.ts"
import { recipes, serviceAt } from "../services/recipes.ts"
import type { Services } from "../services/services.ts"
import type { Sessions } from "../sessions/sessions.ts"
import type { Use } from "../sessions/use.ts"
import type { Terminals } from "../terminals/terminals.ts"
import { askedOf, type Address } from "./address.ts"
import { Admissions, type Admission } from "./admission.ts"
import { answerHead } from "./answer-head.ts"
import { authorityOf, hasOwnNames, originOf, type HostNames } from "./authority.ts"
import { viewOf } from "./built-in.ts"
import { guardBrowser } from "./browser-guard.ts"
import { Channels, type Channel } from "./channels.ts"
import { credentialsOf } from "./credentials.ts"
import { exchange, type Outgoing } from "./exchange.ts"
import { faultAnswer, sayOn, type FaultAnswer } from "./fault-answer.ts"
import { desktopSocket } from "./desktop-socket.ts"
import { InsideAgent, type Place } from "./inside-agent.ts"
import { gatewayLimits } from "./limits.ts"
import { Notes, type NotesOptions } from "./notes.ts"
import { checkHasOwnPorts } from "./own-ports.ts"
import { GatewayRefusal } from "./refusal.ts"
import { requestHead } from "./request-head.ts"
import { socketExchange } from "./socket-exchange.ts"
import { readWindow, ttySocket } from "./tty-socket.ts"
import { ttydFile } from "./ttyd-page.ts"
import { answerTunnels } from "./tunnel-api.ts"
import type { Tunnels } from "./tunnels.ts"
import { detourOf, setCookie, type Detour } from "./visit.ts"

export interface GatewayOptions extends NotesOptions {
  readonly path: string
  /** A socket that is open already; who may connect is then settled. */
  readonly fd?: number | undefined
  /** Who else may connect: a group's number. Nobody when absent. */
  readonly group?: number | undefined
  readonly sessions: Sessions
  readonly tunnels: Tunnels
  readonly terminals: Terminals
  readonly services: Services
  readonly names: HostNames
  /** The folder that pages were built into. */
  readonly pages: string
  /** What a token says, if it is one of this user's, signed by the control plane. Throws otherwise. */
  verify(token: string): GatewayClaims
}

/** A request that was let in, and what it is let in to. */
interface Entry {
  readonly address: Address
  readonly admission: Admission
  readonly query: string
  /** Said with the answer, whoever gives it. */
  readonly said: string[]
}

const ownerOnly = 0o600
const ownerAndGroup = 0o660

/** The front door to what runs in sandboxes. Whoever can open its socket still has to show, with each request, that they may. */
export class Gateway implements AsyncDisposable {
  readonly #options: GatewayOptions
  readonly #server: Server
  readonly #admissions: Admissions
  readonly #notes: Notes
  readonly #channels = new Channels()
  readonly #agent = new InsideAgent()
  readonly #sockets = new Set<Socket>()
  readonly #listening: Disposable

  private constructor(options: GatewayOptions) {
    this.#options = options
    this.#admissions = new Admissions(options)
    this.#notes = new Notes(options)
    this.#listening = options.tunnels.onGone((gone) => {
      this.#channels.cut(({ tunnel }) => tunnel === gone.id, "the tunnel was taken away")
    })
    const { headBytesMax, headMs, idleMs, connectionsMax } = gatewayLimits
    this.#server = createServer({
      maxHeaderSize: headBytesMax,
      headersTimeout: headMs,
      requestTimeout: 0,
      requireHostHeader: false,
    })
    this.#server.maxConnections = connectionsMax
    this.#server.maxHeadersCount = 0
    this.#server.timeout = idleMs
    this.#server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket)
      socket.once("close", () => this.#sockets.delete(socket))
    })
    this.#server.on("request", (request, response) => void this.#request(request, response, false))
    this.#server.on("checkContinue", (request, response) => void this.#request(request, response, true))
    this.#server.on(
      "upgrade",
      (request: IncomingMessage, socket: Socket, head: Buffer) => void this.#upgrade(request, socket, head),
    )
    this.#server.on("connect", (request: IncomingMessage, socket: Socket) =>
      sayOn(socket, this.#refusal(notHere(request), request, undefined)),
    )
    this.#server.on("clientError", (error, socket) => this.#unreadable(error, socket))
  }

  static async open(options: GatewayOptions): Promise<Gateway> {
    const gateway = new Gateway(options)
    const { path, group, fd } = options
    try {
      await listenAt(gateway.#server, path, fd)
      if (fd !== undefined) return gateway
      // The group first: for a moment fewer may connect, never more.
      if (group !== undefined) await chown(path, process.getuid?.() ?? 0, group)
      await chmod(path, group === undefined ? ownerOnly : ownerAndGroup)
    } catch (failure) {
      await gateway[Symbol.asyncDispose]()
      throw failure
    }
    return gateway
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listening[Symbol.dispose]()
    this.#channels.cut(() => true, "the gateway closes")
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve())
      for (const socket of this.#sockets) socket.destroy()
    })
    this.#agent.destroy()
  }

  async #request(request: IncomingMessage, response: ServerResponse, isWaiting: boolean): Promise<void> {
    let entry: Entry | undefined
    try {
      if (request.method === "TRACE") throw notHere(request)
      const asked = this.#asked(request)
      if (asked.kind === "health")
        return void response.writeHead(200, { "content-type": "application/json" }).end('{"status":"ok"}')
      if (asked.kind === "moved") return void response.writeHead(308, { location: asked.to }).end()
      if (asked.kind === "tunnels") {
        const { sid: session } = this.#admissions.owner(credentialsOf(request.rawHeaders, ""))
        if (isWaiting) response.writeContinue()
        return await answerTunnels(request, response, { tunnels: this.#options.tunnels, session, name: asked.name })
      }
      const { detour, ...admitted } = this.#admit(request, asked.address, false)
      entry = admitted
      if (viewOf(entry.admission.builtIn) !== undefined) return await this.#view(request, response, entry, detour)
      if (detour) return sendAway(response, detour)
      await this.#inside(request, entry, (use, outgoing, answered) =>
        exchange(request, response, { ...outgoing, agent: this.#agent, isWaiting, answerHead: answered }),
      )
    } catch (thrown) {
      const { status, headers, body } = this.#refusal(thrown, request, entry)
      if (response.headersSent) return void response.destroy()
      response.writeHead(status, [...headers]).end(body)
    }
  }

  async #upgrade(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    let entry: Entry | undefined
    const written = socket.bytesWritten
    socket.on("error", () => socket.destroy())
    socket.setTimeout(gatewayLimits.idleMs, () => socket.destroy())
    try {
      if (request.method !== "GET" || request.headers.upgrade?.toLowerCase() !== "websocket") throw notHere(request)
      const asked = this.#asked(request)
      if (asked.kind !== "inside") throw new GatewayRefusal(400, "there is no WebSocket here")
      entry = this.#admit(request, asked.address, true)
      socket.pause()
      if (viewOf(entry.admission.builtIn) !== undefined)
        return await this.#ownSocket(request, socket, head, entry.address, entry.admission)
      if (head.length > 0) socket.unshift(head)
      await this.#inside(request, entry, (use, outgoing, answered) =>
        socketExchange(socket, { ...outgoing, answerHead: answered }),
      )
    } catch (thrown) {
      const answer = this.#refusal(thrown, request, entry)
      // Something was said already, and this would come in the middle of it.
      if (socket.bytesWritten > written) return void socket.destroy()
      sayOn(socket, answer)
    }
  }

  #asked(request: IncomingMessage): ReturnType<typeof askedOf> {
    const { names } = this.#options
    return askedOf(request.url ?? "", authorityOf(request.rawHeaders, names), names)
  }

  #admit(
    request: IncomingMessage,
    address: Address,
    isSocket: boolean,
  ): Entry & { readonly detour?: Detour | undefined } {
    const { names } = this.#options
    const [raw, method] = [request.rawHeaders, request.method ?? ""]
    const credentials = credentialsOf(raw, address.query)
    const admission = this.#admissions.admit(address, credentials)
    const { authority } = address
    if (admission.how !== "public") {
      const isSandboxed = !hasOwnNames(authority, names)
      guardBrowser({ raw, method, authority, isSocket, isByCookie: admission.how === "cookie", isSandboxed })
    }
    const { protocol = "auto" } = admission.tunnel ?? {}
    if (protocol !== "auto" && (protocol === "ws") !== isSocket)
      throw new GatewayRefusal(403, `this tunnel is for ${protocol === "ws" ? "WebSockets" : "plain requests"} only`)
    if (admission.how === "url" || admission.how === "bearer") this.#notes.opened(admission.grant)
    const said =
      admission.cookie === undefined
        ? []
        : ["Set-Cookie", setCookie(address, admission.cookie, admission.grant.isFramed)]
    const entry = { address, admission, query: credentials.query, said }
    if (isSocket || admission.builtIn === "vnc") return entry
    return { ...entry, detour: detourOf({ method, raw, address, credentials, admission, names }, this.#admissions) }
  }

  /** Wakes the session, and has it used for as long as the work takes. */
  async #inside(
    request: IncomingMessage,
    entry: Entry,
    work: (use: Use, outgoing: Outgoing, answered: (raw: readonly string[]) => readonly string[]) => Promise<void>,
  ): Promise<void> {
    const { address, admission } = entry
    const { sessions, clock } = this.#options
    using channel = this.#channels.open(admission.grant, admission.tunnel?.id)
    using _ = untilGone(request.socket, channel)
    const { plan, state } = sessions.record(address.session)
    if (admission.builtIn === undefined) checkHasOwnPorts(plan)
    const begun = clock.monotonic()
    using use = await sessions.use(address.session, channel.signal)
    if (admission.builtIn === undefined) sessions.requireUsual(use, "ports")
    const place = await this.#placeOf(use, admission, channel.signal)
    if (state !== "running") entry.said.push("X-Warren-Woke-Ms", String(Math.round(clock.monotonic() - begun)))
    const outgoing = {
      ...{ sandbox: use.live.sandbox, place, method: request.method ?? "GET", signal: channel.signal },
      path: `${address.path}${entry.query}`,
      head: requestHead(request.rawHeaders, address),
    }
    const isPublic = admission.how === "public"
    await work(use, outgoing, (raw) => [
      ...answerHead(raw, { address, port: admission.port, isPublic, framers: this.#framers(address) }),
      ...entry.said,
    ])
  }

  async #placeOf(use: Use, { port, builtIn }: Admission, signal: AbortSignal): Promise<Place> {
    const service = builtIn === undefined ? undefined : serviceAt(builtIn)
    if (service !== undefined) await this.#options.services.ensure(use, service, signal)
    const path = service === undefined ? undefined : recipes[service].socket
    if (path !== undefined) return { path }
    if (port !== undefined) return { port }
    throw new Fault("internal", "a request was let in to nothing")
  }

  /** A terminal or a desktop, which are spoken with here. */
  async #ownSocket(
    request: IncomingMessage,
    socket: Socket,
    head: Buffer,
    { session, query }: Address,
    admission: Admission,
  ): Promise<void> {
    using channel = this.#channels.open(admission.grant, undefined)
    using _ = untilGone(socket, channel)
    const { terminals, services, sessions } = this.#options
    const { signal } = channel
    const { messageBytesMax } = gatewayLimits
    if (admission.builtIn === "ttyd") {
      using client = await MessageSocket.accept(request, socket, head, { protocol: "tty", messageBytesMax })
      const { columns: cols, rows } = await readWindow(client)
      const name = TerminalName.catch("main").parse(new URLSearchParams(query).get("arg") ?? "main")
      await using viewer = await terminals.attach({ session, name, cols, rows, after: 0, env: {} }, signal)
      return await ttySocket(client, viewer, name)
    }
    using use = await sessions.use(session, signal)
    await services.ensure(use, "desktop", signal)
    const desktop = await connectPort(use.live.sandbox, { path: recipes.desktop.socket ?? "" }, signal)
    using client = await MessageSocket.accept(request, socket, head, { protocol: "binary", messageBytesMax })
    await desktopSocket(client, desktop)
  }

  /** What a person sees of what speaks over a WebSocket alone: a terminal is a page of its own where it has a name of its own. */
  async #view(
    request: IncomingMessage,
    response: ServerResponse,
    { address, admission, said }: Entry,
    detour: Detour | undefined,
  ): Promise<void> {
    if (request.method !== "GET" && request.method !== "HEAD") throw notHere(request)
    const { path, session, mode } = address
    // What ttyd's own page asks for first.
    if (path === "/token") {
      const headers = { "content-type": "application/json", "cache-control": "no-store" }
      return void response.writeHead(200, headers).end('{"token":""}')
    }
    if (detour) return sendAway(response, detour)
    const view = viewOf(admission.builtIn) ?? ""
    if (admission.builtIn !== "ttyd" || mode === "path")
      return sendAway(response, { status: 303, location: `${this.#viewOrigin(address)}/s/${session}/${view}` })
    const { headers, body } = await ttydFile(this.#options.pages, path, this.#framers(address))
    response.writeHead(200, [...headers, ...said]).end(request.method === "HEAD" ? undefined : body)
  }

  #viewOrigin({ authority, mode }: Address): string {
    return originOf(mode === "host" ? { ...authority, host: this.#options.names.domain } : authority)
  }

  /** Warren's own page, at the domain or by another name of the same machine, shows previews in frames. */
  #framers({ mode, authority }: Address): string[] {
    const { names } = this.#options
    const hosts = [names.domain, ...names.hosts.filter((host) => hasOwnNames({ ...authority, host }, names))]
    // A policy has no way to write an address of IPv6, and a browser complains of one.
    const written = hosts.filter((host) => !host.startsWith("["))
    return mode === "host" ? written.map((host) => originOf({ ...authority, host })) : []
  }

  /** Written down, and what is said of it. */
  #refusal(thrown: unknown, request: IncomingMessage, entry: Entry | undefined): FaultAnswer {
    const { fault, isRefused } = this.#notes.failed(thrown, entry?.admission.grant)
    const about = entry && { port: entry.admission.port, framers: this.#framers(entry.address), said: entry.said }
    return faultAnswer(fault, { raw: request.rawHeaders, method: request.method, isRefused, ...about })
  }

  #unreadable(error: Error, socket: Duplex): void {
    // Hung up on.
    if (socket.destroyed) return
    const isLong = errnoOf(error) === "HPE_HEADER_OVERFLOW"
    const refusal = isLong
      ? new GatewayRefusal(431, "the head of the request is too long")
      : new GatewayRefusal(400, "the request is not HTTP")
    sayOn(socket, faultAnswer(this.#notes.failed(refusal, undefined).fault, { raw: [], method: undefined }))
  }
}

function notHere(request: IncomingMessage): GatewayRefusal {
  const wanted = valuesOf(request.rawHeaders, "upgrade").length > 0
  return wanted
    ? new GatewayRefusal(400, "the only other protocol here is WebSocket")
    : new GatewayRefusal(405, `${request.method} is not for previews`)
}

function sendAway(response: ServerResponse, { status, location, setCookie }: Detour): void {
  const cookie = setCookie === undefined ? [] : ["Set-Cookie", setCookie]
  const head = [
    "Location",
    location,
    "Cache-Control",
    "no-store",
    "Referrer-Policy",
    "no-referrer",
    "Content-Length",
    "0",
  ]
  response.writeHead(status, [...head, ...cookie]).end()
}

/** Cuts the channel when the client hangs up. Not the response's `close`: one that waits behind another is not told. */
function untilGone(socket: Socket, channel: Channel): Disposable {
  const gone = (): void => channel.abort(new Fault("cancelled", "the client is gone"))
  if (socket.destroyed) gone()
  socket.once("close", gone)
  return { [Symbol.dispose]: () => void socket.off("close", gone) }
}
