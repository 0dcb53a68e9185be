import type { IncomingMessage } from "node:http"
import type { Duplex } from "node:stream"
import { messageOf } from "@warren/base/fault.ts"
import type { Context as HonoContext } from "hono"
import type { AccessTokens } from "./access-token.ts"
import { EnvdDoor, signedBy, type EnvdParts } from "./envd/door.ts"
import { isSigned } from "./envd/signature.ts"
import type { Known } from "./known.ts"
import type { Plane } from "./plane.ts"
import type { Ports } from "./ports/ports.ts"
import { refuse, upgraded } from "./ports/upgrade.ts"
import { refOf } from "./sandbox-id.ts"
import type { Sandbox } from "./sandboxes.ts"

const envdPort = 49_983
const sandboxHost = /^(\d{1,5})-([0-9a-z]{40})\./

/** Where a request for a sandbox is meant to go. */
export interface Goal {
  readonly id: string
  readonly port: number
}

export interface TrafficParts extends EnvdParts {
  readonly known: Known
  readonly tokens: AccessTokens
  /** In the name of the key a sandbox was made with; undefined when that counts no more. */
  within(request: Request | IncomingMessage, key: string): Promise<Plane | undefined>
  readonly ports: Ports
}

/** What is sent to sandboxes: found by header or host name, and let in. */
export class Traffic {
  readonly #parts: TrafficParts
  readonly #envd: EnvdDoor

  constructor(parts: TrafficParts) {
    this.#parts = parts
    this.#envd = new EnvdDoor(parts)
  }

  /** What can be asked of the program inside. */
  get paths(): readonly string[] {
    return this.#envd.paths
  }

  /** Whether it is worth looking at, for those who look at everything that comes. */
  isMaybe(host: string, path: string, id: string | undefined): boolean {
    return id !== undefined || path === "/files" || sandboxHost.test(host)
  }

  /** Undefined for what is not for a sandbox. */
  goalOf(headers: Headers, url: URL, method: string): Goal | undefined {
    const id = headers.get("e2b-sandbox-id")
    if (id !== null) return { id, port: Number(headers.get("e2b-sandbox-port") ?? envdPort) }
    const [, port, sandbox] = sandboxHost.exec(headers.get("host") ?? url.host) ?? []
    if (sandbox !== undefined) return { id: sandbox, port: Number(port) }
    const signature = url.pathname === "/files" ? url.searchParams.get("signature") : null
    if (signature === null) return undefined
    const signed = signedBy(url.searchParams, method, signature)
    const signer = this.#parts.known.find((one) => isSigned(signed, this.#parts.tokens.ofSandbox(one)))
    return signer === undefined ? undefined : { id: signer, port: envdPort }
  }

  async answer(c: HonoContext, goal: Goal, path: string): Promise<Response> {
    const found = await this.#reach(c.req.raw, goal)
    if (!found) return notFound(goal.id)
    const { plane, sandbox } = found
    if (goal.port === envdPort) return this.#toEnvd(c, plane, sandbox, path)
    const { search } = new URL(c.req.url)
    const caller = { plane, sandbox, port: goal.port, method: c.req.method, headers: c.req.raw.headers }
    return this.#parts.ports.answer(c, { ...caller, path: path + search })
  }

  /** Something else than a request: bytes both ways, from now on. */
  async upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, goal: Goal): Promise<void> {
    socket.on("error", () => socket.destroy())
    try {
      const found = await this.#reach(request, goal)
      if (!found || goal.port === envdPort) return await refuse(socket, notFound(goal.id))
      const { method = "GET", url: path = "/" } = request
      const caller = { ...found, port: goal.port, method, path, headers: headersOf(request) }
      await upgraded(this.#parts.ports, caller, request, socket, head)
    } catch (thrown) {
      this.#parts.log("warn", "e2b.upgrade", { message: messageOf(thrown) })
      socket.destroy()
    }
  }

  /** The sandbox, awake, and the name everything in it is done in. */
  async #reach(
    request: Request | IncomingMessage,
    { id }: Goal,
  ): Promise<{ plane: Plane; sandbox: Sandbox } | undefined> {
    const ref = refOf(id)
    const plane = ref && (await this.#parts.within(request, ref.key))
    const found = plane && (await this.#parts.sandboxes.find(plane, id))
    const sandbox = plane && found && (await this.#parts.sandboxes.reached(plane, found))
    if (!plane || !sandbox) return undefined
    this.#parts.known.add(id)
    return { plane, sandbox }
  }

  async #toEnvd(c: HonoContext, plane: Plane, sandbox: Sandbox, path: string): Promise<Response> {
    const request = c.req.raw
    const flight = this.#parts.sandboxes.flights.open(sandbox.session.id, request.signal)
    const asked = { plane, sandbox, request, path, query: new URL(request.url).searchParams }
    const envd = { ...asked, cut: flight.signal, over: () => flight.close() }
    const answer = await this.#envd.answer(envd)
    envd.over()
    for (const [name, value] of openToAll) answer.headers.set(name, value)
    return answer
  }
}

/** A page may use the sandbox whose token it has. */
const openToAll = [
  ["access-control-allow-origin", "*"],
  ["access-control-allow-methods", "*"],
  ["access-control-allow-headers", "*"],
  ["access-control-expose-headers", "*"],
] as const

function notFound(sandboxId: string): Response {
  return Response.json({ sandboxId, message: "The sandbox was not found", code: 502 }, { status: 502 })
}

export function headersOf({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers()
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ""
    if (!name.startsWith(":")) headers.append(name, rawHeaders[at + 1] ?? "")
  }
  return headers
}
