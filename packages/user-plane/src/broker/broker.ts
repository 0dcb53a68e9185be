import { Agent as HttpAgent, type IncomingMessage, type ServerResponse } from "node:http"
import { Agent as HttpsAgent } from "node:https"
import type { Clock } from "@warren/base/clock.ts"
import { Fault, faultCodes } from "@warren/base/fault.ts"
import type { Fields, Log } from "@warren/base/log.ts"
import { Journal } from "@warren/protocol/journal.ts"
import type { LocalHandler } from "../egress/http-front.ts"
import { keyHeader, leaseTokenOf, spellingsOf, type Key } from "./credentials.ts"
import { errandOf, type Errand } from "./errand.ts"
import type { Lease, LeaseScope } from "./lease.ts"
import type { Leases } from "./leases.ts"
import { relay, type Relayed } from "./relay.ts"
import { refusalOf, type Refusal } from "./refusal.ts"
import { Runs } from "./runs.ts"

/** Where the broker sends what it is given: the only places that ever see a key. */
export interface Upstreams {
  readonly anthropic?: string
  readonly openai?: string
  /** By git host; `https://` and the host unless told. */
  readonly git?: Readonly<Record<string, string>>
}

export interface BrokerOptions {
  readonly leases: Leases
  /** The real key for a scope at a destination. */
  readonly keys: (scope: LeaseScope, destination: string) => Promise<Key>
  readonly upstreams?: Upstreams
  readonly log: Log
  readonly clock: Clock
  /** How long a destination may stay silent. */
  readonly answerMs?: number
}

/** One use of a lease, or one refusal: what, where, how much and how long; never what was said. */
export interface BrokerUse {
  readonly time: string
  readonly session: string
  readonly lease: string | undefined
  readonly scope: string | undefined
  readonly destination: string | undefined
  readonly status: number
  readonly refusal: Refusal | undefined
  readonly sentBytes: number
  readonly receivedBytes: number
  readonly ms: number
}

const llmBases = { anthropic: "https://api.anthropic.com", openai: "https://api.openai.com" }
const defaultAnswerMs = 10 * 60_000
const usesMax = 1_000
/** Shorter than servers keep an unused connection: one that they close at the same moment would fail a request. */
const agentOptions = { keepAlive: true, timeout: 4_000, maxSockets: 128 }

/** A request that is allowed, and where it goes. */
interface Way {
  readonly errand: Errand
  readonly base: URL
  readonly lease: Lease
  /** Aborts when the lease ends first. */
  readonly signal: AbortSignal
}

interface Note {
  lease: Lease | undefined
  destination: string | undefined
  refusal: Refusal | undefined
  relayed: Relayed | undefined
}

/** Swaps leases for keys. A sandbox reaches it through its own egress socket, and that says which session it is. */
export class Broker implements Disposable {
  readonly uses: Journal<BrokerUse>
  readonly #options: BrokerOptions
  readonly #runs: Runs
  readonly #watch: Disposable
  readonly #agents = { "http:": new HttpAgent(agentOptions), "https:": new HttpsAgent(agentOptions) }

  constructor(options: BrokerOptions) {
    this.#options = options
    this.uses = new Journal(usesMax, options.clock.now() * 1_000)
    this.#runs = new Runs(options.clock, refused)
    this.#watch = options.leases.watch((lease) => this.#runs.revoke(lease))
  }

  /** Answers what comes through the egress socket of this session's sandbox. */
  handler(session: string): LocalHandler {
    return (request, response) => this.#serve(session, request, response)
  }

  [Symbol.dispose](): void {
    this.#watch[Symbol.dispose]()
    this.#runs.close()
    for (const agent of Object.values(this.#agents)) agent.destroy()
  }

  async #serve(session: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const started = this.#options.clock.monotonic()
    const note: Note = { lease: undefined, destination: undefined, refusal: undefined, relayed: undefined }
    let fault: Fault | undefined
    try {
      await this.#run(session, request, response, note)
    } catch (thrown) {
      fault = Fault.from(thrown)
      answer(response, fault)
      if (fault.code === "internal") this.#options.log("error", "broker.bug", { session, message: fault.message })
    }
    const status = note.relayed?.status ?? faultCodes[fault?.code ?? "internal"].status
    this.#write(session, note, { status, ms: Math.round(this.#options.clock.monotonic() - started) })
  }

  async #run(session: string, request: IncomingMessage, response: ServerResponse, note: Note): Promise<void> {
    const errand = errandOf(request.method ?? "", request.url ?? "")
    const base = this.#baseOf(errand)
    const host = errand.host ?? base.host
    note.destination = errand.repository === undefined ? host : `${host}/${errand.repository}`
    const token = leaseTokenOf(request)
    note.lease = token === undefined ? undefined : this.#options.leases.find(token)
    const asked = { session, scopes: errand.scopes, destination: note.destination, now: this.#options.clock.now() }
    note.refusal = token === undefined ? "no-lease" : refusalOf(note.lease, asked)
    if (note.refusal || !note.lease) throw refused(note.refusal ?? "unknown")
    using run = this.#runs.begin(note.lease)
    try {
      note.relayed = await this.#relay(request, response, { errand, base, lease: note.lease, signal: run.signal })
    } finally {
      note.refusal = run.cut
    }
  }

  async #relay(request: IncomingMessage, response: ServerResponse, way: Way): Promise<Relayed> {
    const { errand, base, lease, signal } = way
    const key = await this.#key(lease.scope, errand.host ?? base.host)
    const prefix = base.pathname.replace(/\/$/, "")
    return await relay(request, response, {
      signal,
      url: base,
      path: prefix + errand.path,
      keyHeader: keyHeader(errand, key),
      secrets: spellingsOf(errand, key),
      agent: this.#agents[base.protocol === "https:" ? "https:" : "http:"],
      answerMs: this.#options.answerMs ?? defaultAnswerMs,
      location: (to) => locationOf(to, base, errand),
    })
  }

  #baseOf({ service, host }: Errand): URL {
    const { upstreams = {} } = this.#options
    const text =
      service === "git" ? (upstreams.git?.[host ?? ""] ?? `https://${host}`) : (upstreams[service] ?? llmBases[service])
    return new URL(text)
  }

  async #key(scope: LeaseScope, destination: string): Promise<Key> {
    try {
      return await this.#options.keys(scope, destination)
    } catch (thrown) {
      // Whatever it says may hold the key: only its kind goes on.
      const code = thrown instanceof Fault ? thrown.code : "internal"
      this.#options.log("warn", "broker.key", { scope, destination, code })
      throw new Fault("unavailable", `there is no key for ${scope}`, { hint: "add one in the settings" })
    }
  }

  #write(session: string, { lease, destination, refusal, relayed }: Note, end: { status: number; ms: number }): void {
    const { sentBytes = 0, receivedBytes = 0 } = relayed ?? {}
    const use = {
      session,
      lease: lease?.id,
      scope: lease?.scope,
      destination,
      refusal,
      sentBytes,
      receivedBytes,
      ...end,
    }
    this.uses.append({ time: new Date(this.#options.clock.now()).toISOString(), ...use })
    this.#options.log(relayed ? "info" : "warn", relayed ? "broker.use" : "broker.refuse", use satisfies Fields)
  }
}

const refusals: Readonly<Record<Refusal, string>> = {
  "no-lease": "this needs a lease",
  unknown: "this lease is not known here",
  "other-session": "this lease is not known here",
  expired: "this lease has expired",
  revoked: "this lease was revoked",
  "other-scope": "this lease is for something else",
  "other-destination": "this lease is for another destination",
}

function refused(refusal: Refusal): Fault {
  const isForbidden = refusal === "other-scope" || refusal === "other-destination"
  return new Fault(isForbidden ? "forbidden" : "unauthenticated", refusals[refusal])
}

/** A redirect within the destination, as the sandbox has to ask for it. */
function locationOf(to: string, base: URL, { prefix, path }: Errand): string | undefined {
  const basePath = base.pathname.replace(/\/$/, "")
  let target: URL
  try {
    target = new URL(to, new URL(basePath + path, base))
  } catch {
    return undefined
  }
  const isWithin = target.origin === base.origin && target.pathname.startsWith(`${basePath}/`)
  if (!isWithin || target.username !== "" || target.password !== "") return undefined
  return prefix + target.pathname.slice(basePath.length) + target.search
}

/** In the shape that LLM clients read; git shows the status alone. */
function answer(response: ServerResponse, fault: Fault): void {
  // Who left hears nothing, and an answer that broke off has been cut already.
  if (response.destroyed) return
  const error = {
    type: errorTypes[fault.code] ?? "api_error",
    message: `warren broker: ${fault.message}`,
    code: fault.code,
  }
  response.writeHead(faultCodes[fault.code].status, { "content-type": "application/json", connection: "close" })
  response.end(JSON.stringify({ type: "error", error }))
}

const errorTypes: Readonly<Record<string, string>> = {
  invalid: "invalid_request_error",
  unauthenticated: "authentication_error",
  forbidden: "permission_error",
  not_found: "not_found_error",
}
