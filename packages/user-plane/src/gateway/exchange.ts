import { request as httpRequest, type ClientRequest, type IncomingMessage, type ServerResponse } from "node:http"
import { Fault } from "@warren/base/fault.ts"
import type { Sandbox } from "@warren/drivers/driver.ts"
import { connectInside, type Inside, type InsideAgent, type Place } from "./inside-agent.ts"
import { LentMemory } from "./lent-memory.ts"
import { gatewayLimits } from "./limits.ts"
import { bodyHead, hasBody } from "./request-head.ts"
import { GatewayRefusal, NobodyListens } from "./refusal.ts"

/** A request on its way in. */
export interface Outgoing {
  readonly sandbox: Sandbox
  readonly place: Place
  readonly method: string
  /** As it is asked for inside. */
  readonly path: string
  readonly head: readonly string[]
  /** Cuts it: its client is gone, or is no longer let in. */
  readonly signal: AbortSignal
}

interface Exchange extends Outgoing {
  readonly agent: InsideAgent
  /** The client waits to be told to send its body. */
  readonly isWaiting: boolean
  answerHead(raw: readonly string[]): readonly string[]
}

/** Can be asked twice with the effect of once, so a connection that has been waiting may turn out to be dead. */
const repeatable = new Set(["GET", "HEAD", "OPTIONS"])

/** Sends the request in and the answer back, each as fast as its reader takes it. */
export async function exchange(request: IncomingMessage, response: ServerResponse, to: Exchange): Promise<void> {
  const isRepeatable = repeatable.has(to.method) && !hasBody(request.rawHeaders)
  const expects = to.isWaiting ? ["Expect", "100-continue"] : []
  const more = [...bodyHead(request.rawHeaders, to.method), ...expects]
  const sent = insideRequest({ ...to, head: [...to.head, ...more] }, isRepeatable ? to.agent : undefined)
  const cut = (): void => void sent.destroy()
  to.signal.addEventListener("abort", cut, { once: true })
  try {
    if (!isRepeatable) passBody(request, response, sent, to.isWaiting)
    else sent.end()
    const incoming = await answerTo(sent)
    await passAnswer(incoming, response, to.answerHead(incoming.rawHeaders))
  } catch (thrown) {
    if (isRepeatable && sent.reusedSocket && !response.headersSent && !to.signal.aborted)
      return await exchange(request, response, to)
    to.signal.throwIfAborted()
    throw thrown
  } finally {
    to.signal.removeEventListener("abort", cut)
    request.unpipe(sent)
    // What is left of the body nobody wants; the connection can go on only when it has passed.
    request.resume()
    if (!sent.writableFinished || !response.writableFinished) sent.destroy()
  }
}

/** On a connection that has waited, or, without an agent, on one of its own. */
export function insideRequest(to: Outgoing, agent: InsideAgent | undefined): ClientRequest {
  const options: Inside = {
    ...{ sandbox: to.sandbox, place: to.place, method: to.method, path: to.path, headers: to.head, setHost: false },
    ...{ maxHeaderSize: gatewayLimits.headBytesMax },
    ...(agent ? { agent } : { createConnection: connectInside }),
  }
  const sent = httpRequest(options)
  // Connections come paused, and Node's parser waits without asking.
  sent.once("socket", (socket) => socket.resume())
  return sent
}

/** The answer, or what kept it from coming. */
export function answerTo(sent: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    sent.once("response", resolve)
    // Stays: the connection may still break while the answer is read, and then the answer says so.
    sent.on("error", (cause) => reject(failureOf(cause)))
    sent.once("close", () => reject(new GatewayRefusal(502, "the program closed the connection without an answer")))
  })
}

export function failureOf(cause: Error): Fault {
  if (cause instanceof Fault) return cause.code === "unavailable" ? new NobodyListens(cause) : cause
  if (cause.name === "TimeoutError") return new Fault("timeout", "nothing took the connection in time", { cause })
  return new GatewayRefusal(502, "the program did not answer as a web server does", { cause })
}

/** Not a pipeline: an answer that comes before the whole body was taken is an answer. */
function passBody(request: IncomingMessage, response: ServerResponse, sent: ClientRequest, isWaiting: boolean): void {
  const pass = (): void => void request.pipe(sent)
  if (!isWaiting) return pass()
  const go = (): void => {
    clearTimeout(timer)
    if (sent.destroyed || response.headersSent) return
    response.writeContinue()
    pass()
  }
  const timer = setTimeout(go, gatewayLimits.continueMs)
  sent.once("continue", go)
  sent.once("response", () => clearTimeout(timer))
  sent.once("close", () => clearTimeout(timer))
}

async function passAnswer(incoming: IncomingMessage, response: ServerResponse, head: readonly string[]): Promise<void> {
  response.sendDate = false
  response.writeHead(incoming.statusCode ?? 502, incoming.statusMessage, [...head])
  // A stream of events begins long before its first event.
  response.flushHeaders()
  await piped(incoming, response, () => {
    const trailers = Object.entries(incoming.trailers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value]],
    )
    if (trailers.length > 0) response.addTrailers(trailers as [string, string][])
  })
}

/** Like a pipeline, with something to say before the end. */
function piped(from: IncomingMessage, to: ServerResponse, beforeEnd: () => void): Promise<void> {
  const lent = new LentMemory(from.socket)
  return new Promise((resolve, reject) => {
    const fail = (cause?: Error): void => {
      from.destroy()
      to.destroy()
      reject(new GatewayRefusal(502, "the connection broke", { cause }))
    }
    from.once("error", fail).once("close", () => {
      if (!from.readableEnded) fail()
    })
    to.once("error", fail).once("close", () => {
      if (!to.writableFinished) fail()
    })
    to.once("finish", resolve)
    from.once("end", () => {
      beforeEnd()
      to.end()
    })
    from.on("data", (piece: Buffer) => {
      if (!to.write(piece, lent.take(piece))) from.pause()
    })
    to.on("drain", () => from.resume())
  })
}
