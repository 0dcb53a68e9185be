import { IncomingMessage } from "node:http"
import type { Duplex } from "node:stream"
import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import { e2bDoor } from "@warren/e2b/door.ts"
import { headersOf, type Traffic } from "@warren/e2b/traffic.ts"
import { untilGone } from "@warren/protocol/http/routes.ts"
import { userPlane, type UserPlane } from "@warren/protocol/user-plane.ts"
import type { Context as HonoContext, Hono, MiddlewareHandler } from "hono"
import type { Control } from "../../control.ts"
import { Visits } from "../../observe/observe.ts"
import { Visit, type Principal } from "../../visit.ts"
import { Ask } from "../ask.ts"

interface MountParts {
  readonly control: Control
  readonly domain: string
  readonly clock: Clock
  readonly log: Log
}

const prefix = "/e2b"
/** In the place of a token's id, for the one in the file. */
const ownKey = "0".repeat(20)

/** Where clients of E2B come in. What they ask goes through the same gate as everything else. */
export class E2bMount implements Disposable {
  /** The control API: below `/e2b`, and at `api.<domain>`. */
  readonly api: Hono
  /** Of everything that comes in, for the app to begin. */
  readonly visits = new Visits()
  readonly #parts: MountParts
  readonly #plane: UserPlane
  readonly #traffic: Traffic
  readonly #door: Disposable

  constructor(parts: MountParts) {
    this.#parts = parts
    this.#plane = parts.control.gate.guard(userPlane, parts.control.userPlane)
    const { control, domain, clock, log } = parts
    const asking = (c: HonoContext) => this.#asking(c)
    const within = (request: Request | IncomingMessage, key: string) => this.#within(request, key)
    const door = e2bDoor({ secret: control.e2bSecret, domain, clock, log, asking, within })
    this.api = door.api
    this.#traffic = door.traffic
    this.#door = door
  }

  /** Takes what is for a sandbox, by header or by host name, and what is for `api.<domain>`. */
  readonly sandboxes: MiddlewareHandler = async (c, next) => {
    const host = c.req.header("host") ?? new URL(c.req.url).host
    if (this.#traffic.isMaybe(host, c.req.path, c.req.header("e2b-sandbox-id"))) {
      const url = new URL(c.req.url)
      const goal = this.#traffic.goalOf(c.req.raw.headers, url, c.req.method)
      // As it came: what stands for other characters is the business of who is asked.
      const { pathname } = url
      const path = pathname.startsWith(`${prefix}/`) ? pathname.slice(prefix.length) : pathname
      if (goal) return this.#traffic.answer(c, goal, path)
    }
    const { domain } = this.#parts
    if (domain !== "" && host === `api.${domain}`) return this.api.fetch(c.req.raw, c.env)
    return next()
  };

  [Symbol.dispose](): void {
    this.#door[Symbol.dispose]()
  }

  async #asking(c: HonoContext) {
    const { control } = this.#parts
    const visit = this.visits.of(c.req.raw)
    const key = c.req.header("x-api-key")
    visit.principal = key === undefined ? await control.identity.of(c.req.raw) : await control.identity.ofToken(key)
    return { plane: Ask.by(visit, this.#plane, untilGone(c.req.raw.signal)), key: keyOf(visit.who) }
  }

  async #within(request: Request | IncomingMessage, key: string): Promise<Ask | undefined> {
    const isUpgrade = request instanceof IncomingMessage
    const visit = isUpgrade ? new Visit(request.socket.remoteAddress ?? "") : this.visits.of(request)
    visit.principal = await this.#parts.control.identity.ofTokenId(key === ownKey ? "" : `tok_${key}`)
    const gone = isUpgrade ? goneWith(request) : untilGone(request.signal)
    return visit.principal && Ask.by(visit, this.#plane, gone)
  }

  /** Takes what asks for an upgrade at a sandbox; the others go where they went. */
  guard(server: Upgrading): void {
    const others = server.listeners("upgrade") as ((request: IncomingMessage, socket: Duplex, head: Buffer) => void)[]
    server.removeAllListeners("upgrade")
    server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      const url = new URL(request.url ?? "/", "http://sandbox")
      const goal = this.#traffic.goalOf(headersOf(request), url, request.method ?? "GET")
      if (goal) void this.#traffic.upgrade(request, socket, head, goal)
      else for (const other of others) other.call(server, request, socket, head)
    })
  }
}

/** What every kind of server has, as far as upgrades go. */
interface Upgrading {
  listeners(event: "upgrade"): unknown[]
  removeAllListeners(event: "upgrade"): unknown
  on(event: "upgrade", listener: (request: IncomingMessage, socket: Duplex, head: Buffer) => void): unknown
}

function goneWith({ socket }: IncomingMessage): AbortSignal {
  const gone = new AbortController()
  socket.once("close", () => gone.abort(new Fault("cancelled", "the caller went away")))
  return gone.signal
}

function keyOf({ via, viaId }: Principal): string {
  if (via === "token") return viaId.slice("tok_".length)
  if (via === "token-file") return ownKey
  throw new Fault("forbidden", "sandboxes are made with a token", { hint: "warren token create --e2b" })
}
