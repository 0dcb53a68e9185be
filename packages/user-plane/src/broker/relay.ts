import {
  request as httpRequest,
  type Agent,
  type ClientRequest,
  type IncomingMessage,
  type ServerResponse,
} from "node:http"
import { request as httpsRequest } from "node:https"
import { pipeline } from "node:stream/promises"
import { Fault } from "@warren/base/fault.ts"
import { endToEnd, framing, pairsOf, valuesOf } from "../egress/headers.ts"
import { isCredential } from "./credentials.ts"
import { mask, maskText } from "./mask.ts"

interface Relay {
  readonly url: URL
  /** The path and query, byte for byte. */
  readonly path: string
  readonly keyHeader: readonly [name: string, value: string]
  /** What must not come back, in any of its spellings. */
  readonly secrets: readonly string[]
  readonly agent: Agent
  readonly answerMs: number
  /** Cuts it, also in the middle of an answer. */
  readonly signal: AbortSignal
  /** Where a redirect leads in the broker's own paths; undefined when that is elsewhere. */
  location(to: string): string | undefined
}

export interface Relayed {
  readonly status: number
  readonly sentBytes: number
  readonly receivedBytes: number
}

const fromUs: ReadonlySet<string> = new Set(["host", "expect", "accept-encoding", "forwarded", "via"])
const fromThem: ReadonlySet<string> = new Set([
  "set-cookie",
  "www-authenticate",
  "alt-svc",
  "strict-transport-security",
  "location",
])

/** Sends the request on with the real key in place of the lease, and the answer back as it comes. */
export async function relay(request: IncomingMessage, response: ServerResponse, to: Relay): Promise<Relayed> {
  to.signal.throwIfAborted()
  const sent = send(request, to)
  const hungUp = (): void => void sent.destroy()
  to.signal.addEventListener("abort", hungUp, { once: true })
  request.socket.once("close", hungUp)
  let sentBytes = 0
  let receivedBytes = 0
  request.on("data", (chunk: Buffer) => (sentBytes += chunk.length))
  request.pipe(sent)
  try {
    const incoming = await answered(sent)
    response.sendDate = false
    response.writeHead(incoming.statusCode ?? 502, incoming.statusMessage, answerHeaders(incoming, to))
    // A stream of events begins long before its first event.
    response.flushHeaders()
    incoming.on("data", (chunk: Buffer) => (receivedBytes += chunk.length))
    await pipeline(incoming, mask(to.secrets), response)
    return { status: incoming.statusCode ?? 502, sentBytes, receivedBytes }
  } catch (cause) {
    sent.destroy()
    to.signal.throwIfAborted()
    throw cause instanceof Fault ? cause : new Fault("unavailable", "the destination does not answer", { cause })
  } finally {
    to.signal.removeEventListener("abort", hungUp)
    request.socket.off("close", hungUp)
    request.unpipe(sent)
    request.resume()
  }
}

function send(request: IncomingMessage, { url, path, keyHeader, agent, answerMs }: Relay): ClientRequest {
  const isDropped = (name: string): boolean =>
    fromUs.has(name) || isCredential(name) || name.startsWith("x-forwarded-") || name.startsWith("x-warren-")
  const headers = ["Host", url.host, ...endToEnd(request.rawHeaders, isDropped), ...framing(request.rawHeaders)]
  // Nothing packed: a key that comes back in an answer must be seen.
  headers.push("Accept-Encoding", "identity", ...keyHeader)
  const make = url.protocol === "https:" ? httpsRequest : httpRequest
  const options = {
    hostname: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port,
    path,
    method: request.method,
    headers,
    agent,
  }
  const sent = make({ ...options, setHost: false })
  sent.setTimeout(answerMs, () => sent.destroy(new Fault("timeout", "the destination takes too long")))
  return sent
}

function answered(sent: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    sent.once("response", resolve)
    sent.on("error", reject)
    sent.once("close", () => reject(new Error("the connection closed without an answer")))
  })
}

function answerHeaders(incoming: IncomingMessage, to: Relay): string[] {
  const kept = endToEnd(incoming.rawHeaders, (name) => fromThem.has(name))
  const [target] = valuesOf(incoming.rawHeaders, "location")
  if (target !== undefined) {
    const location = to.location(target)
    if (location === undefined) {
      throw new Fault("forbidden", "the destination sends the request elsewhere, and the key does not go there")
    }
    kept.push("Location", location)
  }
  return [...pairsOf(kept)].flatMap(([name, value]) => [name, maskText(value, to.secrets)])
}
