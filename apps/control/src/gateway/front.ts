import type { KeyObject } from "node:crypto"
import type { EventEmitter } from "node:events"
import { lstat } from "node:fs/promises"
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from "node:http"
import { dirname, join } from "node:path"
import type { Duplex } from "node:stream"
import type { Clock } from "@warren/base/clock.ts"
import { errnoOf, Fault, faultCodes, messageOf } from "@warren/base/fault.ts"
import { JoinedSignal } from "@warren/base/joined-signal.ts"
import type { Log } from "@warren/base/log.ts"
import type { Gate } from "../gate.ts"
import type { Identity } from "../login/identity.ts"
import type { Metrics } from "../observe/metrics.ts"
import type { RunnerRoute } from "../runners/runners.ts"
import type { Store } from "../store/store.ts"
import type { UserRow } from "../store/users.ts"
import { Visit } from "../visit.ts"
import type { Watch } from "../watch.ts"
import { LastLook } from "./last-look.ts"
import { askedOf, checkAsked, type ForGateway, type GatewayNames, type Head } from "./asked.ts"
import type { Ownership } from "./ownership.ts"
import { proofOf, withLiveCookies } from "./proof.ts"
import { headText, relay, relaySocket, type AnyRequest, type AnyResponse, type Relayed, type Way } from "./relay.ts"
import { requestHead, valuesOf } from "./relayed-head.ts"

interface FrontParts {
  readonly names: GatewayNames
  readonly scheme: "http" | "https"
  /** The public half of what gateway tokens are signed with. */
  readonly key: KeyObject
  readonly store: Pick<Store, "users">
  readonly ownership: Ownership
  readonly identity: Identity
  readonly gate: Gate
  readonly watch: Watch
  readonly metrics: Metrics
  readonly clock: Clock
  readonly log: Log
  routeOf(user: UserRow): Promise<RunnerRoute>
}

const action = "gateway.request"
const addressCharsMax = 64

/**
 * What comes for gateways, before anything else looks at it: sent on to the runner of whoever's session it is. The runner decides who is
 * let in; here it is seen to that what they were let in with still counts, and what is refused is written down.
 */
export class GatewayFront implements Disposable {
  readonly #parts: FrontParts
  readonly #stop = new AbortController()
  readonly #lastLook = new LastLook()

  constructor(parts: FrontParts) {
    this.#parts = parts
  }

  /** Takes a server's requests for gateways; the others go where they went. After what else listens on it. */
  guard(server: EventEmitter): void {
    const [answer] = server.listeners("request") as ((request: AnyRequest, response: AnyResponse) => void)[]
    const upgrades = server.listeners("upgrade") as ((request: IncomingMessage, socket: Duplex, head: Buffer) => void)[]
    for (const event of ["request", "upgrade", "checkContinue"]) server.removeAllListeners(event)
    server.on("request", (request: IncomingMessage, response: ServerResponse) => {
      if (!this.#take(request, response, false)) answer?.call(server, request, response)
    })
    server.on("checkContinue", (request: IncomingMessage, response: ServerResponse) => {
      if (this.#take(request, response, true)) return
      response.writeContinue()
      answer?.call(server, request, response)
    })
    server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      const asked = askedOf(headOf(request), this.#parts.names)
      if (asked) void this.#upgrade(request, socket, head, asked)
      else for (const upgrade of upgrades) upgrade.call(server, request, socket, head)
    })
    this.#lastLook.guard(server)
    server.on("clientError", (error: Error, socket: Duplex) => void this.#unreadable(error, socket))
  }

  /** Cuts what is open. */
  [Symbol.dispose](): void {
    this.#stop.abort(new Fault("unavailable", "Warren is stopping"))
  }

  #take(request: AnyRequest, response: AnyResponse, isWaiting: boolean): boolean {
    const asked = askedOf(headOf(request), this.#parts.names)
    if (asked) void this.#request(request, response, isWaiting, asked)
    return asked !== undefined
  }

  async #request(request: AnyRequest, response: AnyResponse, isWaiting: boolean, asked: ForGateway): Promise<void> {
    const visit = visitOf(request, asked)
    await this.#counted(visit, async () => {
      try {
        return await this.#through(visit, request, asked, (way) => relay(request, response, way, isWaiting))
      } catch (thrown) {
        const fault = Fault.from(thrown)
        if (response.headersSent) (response as ServerResponse).destroy()
        else say(response, fault)
        throw fault
      }
    })
  }

  async #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, asked: ForGateway): Promise<void> {
    const visit = visitOf(request, asked)
    socket.on("error", () => socket.destroy())
    await this.#counted(visit, async () => {
      try {
        return await this.#through(visit, request, asked, (way) => relaySocket(socket, head, way))
      } catch (thrown) {
        const fault = Fault.from(thrown)
        // What broke after something was said has broken the connection, too: then this goes nowhere.
        socket.end(textOf(fault), () => socket.destroy())
        throw fault
      }
    })
  }

  /** What is no HTTP, or could be read in two ways. Written down: nobody sends that by mistake. */
  async #unreadable(error: Error, socket: Duplex): Promise<void> {
    if (errnoOf(error) === "ERR_HTTP_REQUEST_TIMEOUT" && !(await this.#lastLook.isSilent(socket))) return
    // Hung up on, or told already.
    if (!socket.writable) return void socket.destroy()
    const { remoteAddress = "" } = socket as { remoteAddress?: string }
    const status = errnoOf(error) === "HPE_HEADER_OVERFLOW" ? 431 : 400
    this.#parts.gate.noteRefusal(new Visit(remoteAddress.slice(0, addressCharsMax)), "request.unreadable", "invalid")
    socket.end(headText(status, STATUS_CODES[status] ?? "", { connection: "close", "content-length": "0" }), () =>
      socket.destroy(),
    )
  }

  /** Finds the way, and has it watched for as long as the work takes. */
  async #through(
    visit: Visit,
    request: AnyRequest,
    asked: ForGateway,
    work: (way: Way) => Promise<Relayed>,
  ): Promise<Relayed> {
    const { names, key, clock, identity, watch, scheme, store } = this.#parts
    const about = headOf(request)
    checkAsked(about, asked, names)
    if (valuesOf(request.rawHeaders, "host").length > 1) throw new Fault("invalid", "a request has exactly one Host")
    const { claims, vias } = proofOf(request.rawHeaders, about.url, key, clock.now())
    const owner = await this.#owner(asked.session, claims?.sub)
    const principals = await Promise.all(vias.map((via) => identity.ofVia(via, owner.id)))
    if (principals.includes(undefined)) throw closed()
    visit.principal = principals[0]
    const isLive = async (one: string): Promise<boolean> => (await identity.ofVia(one, owner.id)) !== undefined
    const { raw, vias: ofCookies } = await withLiveCookies(request.rawHeaders, isLive)
    const all = [...new Set([...vias, ...ofCookies])]
    const still = async (): Promise<boolean> => {
      const user = await store.users.byId(owner.id)
      if (!user || user.isDisabled) return false
      return !(await Promise.all(all.map(isLive))).includes(false)
    }
    const watched = watch.openAs("stream", `gateway ${owner.id} ${all.join(" ")}`, still)
    using until = new JoinedSignal(watched.signal, this.#stop.signal)
    try {
      const { signal } = until
      const visitor = { host: about.host, scheme, address: visit.address }
      const method = request.method ?? "GET"
      const head = requestHead(raw, visitor)
      return await work({ socketPath: await this.#socketOf(owner), path: about.url, method, head, signal })
    } finally {
      watched.close()
    }
  }

  /** Whose runner it is for. Who may not know learns nothing: every way of not knowing sounds the same. */
  async #owner(session: string | undefined, claimed: string | undefined): Promise<UserRow> {
    const { store, ownership } = this.#parts
    const known = session === undefined ? undefined : await ownership.of(session)
    const user = known === undefined ? claimed && (await store.users.byName(claimed)) : await store.users.byId(known)
    if (!user || user.isDisabled) throw closed()
    return user
  }

  async #socketOf(owner: UserRow): Promise<string> {
    const { socket, uid } = await this.#parts.routeOf(owner)
    const path = join(dirname(socket), "gateway.sock")
    const found = await lstat(path).catch(() => undefined)
    // Somebody else's, at that path, would be told everything.
    if (found?.isSocket() && found.uid === uid) return path
    throw new Fault("unavailable", "the runner of this session does not answer", { hint: "try again in a moment" })
  }

  async #counted(visit: Visit, work: () => Promise<Relayed>): Promise<void> {
    const { metrics, gate, clock, log } = this.#parts
    const begun = clock.monotonic()
    const count = (status: number): void =>
      metrics.observe({ call: action, status, seconds: (clock.monotonic() - begun) / 1000 })
    metrics.inFlight++
    try {
      const { status, refused } = await work()
      count(status)
      if (refused !== undefined) gate.noteRefusal(visit, action, refused)
    } catch (thrown) {
      const fault = Fault.from(thrown)
      count(faultCodes[fault.code].status)
      if (fault.code === "internal") log("error", "gateway.bug", { message: messageOf(thrown) })
      if (faultCodes[fault.code].status < 500) gate.noteRefusal(visit, action, fault.code)
    } finally {
      metrics.inFlight--
    }
  }
}

/** HTTP/2 has its own word for it, which then is the one that counts. */
function headOf(request: AnyRequest): Head {
  const host = ("authority" in request && request.authority) || request.headers.host || ""
  return { url: request.url ?? "", host }
}

function visitOf(request: AnyRequest, { session }: ForGateway): Visit {
  const visit = new Visit((request.socket.remoteAddress ?? "").slice(0, addressCharsMax))
  visit.call = action
  visit.subject = /^ses_[0-9a-z]{20}$/.exec(session ?? "")?.[0] ?? ""
  return visit
}

function closed(): Fault {
  return new Fault("unauthenticated", "this is not open to everybody", { hint: "open it from Warren" })
}

function answerOf(fault: Fault): { status: number; headers: Record<string, string>; body: string } {
  const { status } = faultCodes[fault.code]
  const body = `${fault.code === "internal" ? "something went wrong here" : fault.message}${fault.hint === undefined ? "" : ` (${fault.hint})`}\n`
  const headers = {
    "content-type": "text/plain; charset=utf-8",
    "content-length": String(Buffer.byteLength(body)),
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    ...{ "cache-control": "no-store", "x-content-type-options": "nosniff", "referrer-policy": "no-referrer" },
  }
  return { status, headers, body }
}

/** It ends the connection: what is left of a request's body would be read as the next request. */
function say(response: AnyResponse, fault: Fault): void {
  const { status, headers, body } = answerOf(fault)
  const over: Record<string, string> = "stream" in response ? headers : { ...headers, connection: "close" }
  ;(response as ServerResponse).writeHead(status, over).end(body)
}

function textOf(fault: Fault): string {
  const { status, headers, body } = answerOf(fault)
  return `${headText(status, STATUS_CODES[status] ?? "", { ...headers, connection: "close" })}${body}`
}
