import { request as httpRequest, type IncomingMessage } from "node:http"
import { Readable, type Duplex } from "node:stream"
import { connect as tlsConnect } from "node:tls"
import { Fault } from "@warren/base/fault.ts"
import type { Context as HonoContext } from "hono"
import { isSameText, type AccessTokens } from "../access-token.ts"
import type { Plane } from "../plane.ts"
import type { Sandbox, Sandboxes } from "../sandboxes.ts"
import { interpreterPort, type Interpreter } from "../interpreter/interpreter.ts"
import { answeredHead, passedHead } from "./passed-head.ts"
import { PortStream } from "./port-stream.ts"

const portMax = 65_535

/** Somebody who comes for a port. */
export interface Caller {
  readonly plane: Plane
  readonly sandbox: Sandbox
  readonly port: number
  readonly method: string
  /** With what is asked of it. */
  readonly path: string
  readonly headers: Headers
}

interface PortsParts {
  readonly tokens: AccessTokens
  readonly sandboxes: Sandboxes
  readonly interpreter: Interpreter
}

/** What listens in sandboxes. */
export class Ports {
  readonly #parts: PortsParts

  constructor(parts: PortsParts) {
    this.#parts = parts
  }

  /** A connection to it, or the answer to whoever may not have one. */
  async open(caller: Caller, signal: AbortSignal): Promise<Duplex | Response> {
    const { sandbox, port } = caller
    if (!Number.isInteger(port) || port < 1 || port > portMax)
      return refusal(sandbox.id, `there is no port ${port}`, 400)
    const denied = this.#denied(caller)
    if (denied !== undefined) return refusal(sandbox.id, denied, 403)
    try {
      const stream = await this.#connect(caller.plane.until(signal), sandbox, port)
      return sandbox.settings.network?.httpsPorts?.includes(port) ? await secured(stream) : stream
    } catch (thrown) {
      if (Fault.from(thrown).code !== "unavailable") throw thrown
      return closedPort(sandbox.id, port)
    }
  }

  async #connect(plane: Plane, sandbox: Sandbox, port: number): Promise<Duplex> {
    const connect = (): Promise<Duplex> => PortStream.open(plane, sandbox.session.id, port)
    if (port !== interpreterPort) return connect()
    return connect().catch(async (thrown: unknown) => {
      if (Fault.from(thrown).code !== "unavailable") throw thrown
      await this.#parts.interpreter.ensure(plane, sandbox)
      return connect()
    })
  }

  /** A plain request, and what was answered. */
  async answer(c: HonoContext, caller: Caller): Promise<Response> {
    const flight = this.#parts.sandboxes.flights.open(caller.sandbox.session.id, c.req.raw.signal)
    const stream = await this.open(caller, flight.signal).catch((thrown: unknown) => {
      flight.close()
      throw thrown
    })
    if (stream instanceof Response) {
      flight.close()
      return stream
    }
    flight.signal.addEventListener("abort", () => stream.destroy())
    stream.once("close", () => flight.close())
    try {
      return responseOf(await exchanged(c, caller, stream), caller.method)
    } catch {
      stream.destroy()
      return closedPort(caller.sandbox.id, caller.port)
    }
  }

  #denied({ sandbox, port, path, headers }: Caller): string | undefined {
    const isPrivate = sandbox.settings.network?.allowPublicTraffic === false
    const traffic = headers.get("e2b-traffic-access-token") ?? ""
    if (isPrivate && !isSameText(traffic, this.#parts.tokens.ofTraffic(sandbox.id)))
      return "Sandbox is secured with traffic access token. Token header 'e2b-traffic-access-token' is missing or wrong"
    // Clients show it there, and it runs whatever it is sent.
    const isExecution = port === interpreterPort && path.startsWith("/execute")
    const token = headers.get("x-access-token") ?? ""
    if (isExecution && !isSameText(token, this.#parts.tokens.ofSandbox(sandbox.id))) return "the access token is wrong"
    return undefined
  }
}

/** The head for a program inside: the name it was asked for by, or the one it is to see. */
export function headFor(
  { sandbox, port }: Caller,
  raw: readonly string[],
  authority: string,
  isUpgrade = false,
): string[] {
  const host = sandbox.settings.network?.maskRequestHost?.replaceAll("${PORT}", String(port))
  return passedHead(raw, authority, { host, isUpgrade })
}

function exchanged(c: HonoContext, caller: Caller, stream: Duplex): Promise<IncomingMessage> {
  const { incoming } = (c.env ?? {}) as { incoming?: { rawHeaders: string[] } }
  const raw = incoming?.rawHeaders ?? [...c.req.raw.headers].flat()
  const authority = c.req.header("host") ?? new URL(c.req.url).host
  return new Promise((resolve, reject) => {
    // Without an agent of ours: one would not use the connection it is given.
    const options = { method: caller.method, path: caller.path, headers: headFor(caller, raw, authority) as never }
    const request = httpRequest({ ...options, setHost: false, createConnection: () => stream })
    request.once("response", resolve)
    request.once("error", reject)
    const { body } = c.req.raw
    if (body)
      Readable.fromWeb(body as never)
        .on("error", reject)
        .pipe(request)
    else request.end()
  })
}

function responseOf(answer: IncomingMessage, method: string): Response {
  const status = answer.statusCode ?? 502
  const isEmpty = status === 204 || status === 304 || method === "HEAD"
  const headers = new Headers()
  for (const [name, value] of answeredHead(answer.rawHeaders)) headers.append(name, value)
  if (isEmpty) answer.resume()
  const body = isEmpty ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>)
  return new Response(body, { status, headers })
}

/** Programs that speak TLS inside have certificates of their own making. */
function secured(stream: Duplex): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const socket = tlsConnect({ socket: stream, rejectUnauthorized: false }, () => resolve(socket))
    socket.once("error", (cause) => reject(new Fault("unavailable", "no TLS is spoken there", { cause })))
  })
}

function refusal(sandboxId: string, message: string, code: number): Response {
  return Response.json({ sandboxId, message, code }, { status: code })
}

function closedPort(sandboxId: string, port: number): Response {
  const message = "The sandbox is running but port is not open"
  return Response.json({ message, sandboxId, port, code: 502 }, { status: 502 })
}
