import { request as httpRequest, type ClientRequest, type IncomingMessage, type ServerResponse } from "node:http"
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2"
import type { Duplex } from "node:stream"
import { Fault } from "@warren/base/fault.ts"
import { answerHead, bodyHead } from "./relayed-head.ts"

export type AnyRequest = IncomingMessage | Http2ServerRequest
export type AnyResponse = ServerResponse | Http2ServerResponse

export interface Way {
  /** The gateway's socket. */
  readonly socketPath: string
  readonly path: string
  readonly method: string
  readonly head: readonly string[]
  /** Cuts it: what let it in does not count any more. */
  readonly signal: AbortSignal
}

/** What became of it. */
export interface Relayed {
  readonly status: number
  /** Why the gateway refused it, if it did. */
  readonly refused: string | undefined
}

/** For a runner to take the connection and say something. Long, because a session may have to be woken. */
const answerMs = 120_000
const headBytesMax = 32 * 1024

/** Passes a request on and its answer back, each as fast as its reader takes it. */
export async function relay(
  request: AnyRequest,
  response: AnyResponse,
  way: Way,
  isWaiting: boolean,
): Promise<Relayed> {
  const expects = isWaiting ? ["Expect", "100-continue"] : []
  const framed = [...way.head, ...bodyHead(request.rawHeaders, way.method), ...expects]
  const sent = ask({ ...way, head: framed })
  const cut = (): void => {
    sent.destroy()
    ;(response as ServerResponse).destroy()
  }
  const gone = (): void => void (response.writableFinished || sent.destroy())
  way.signal.addEventListener("abort", cut, { once: true })
  response.on("close", gone)
  try {
    if (isWaiting) sent.once("continue", () => (response.writeContinue(), request.pipe(sent)))
    else request.pipe(sent)
    const incoming = await answerTo(sent)
    const { headers, refused } = answerHead(incoming.rawHeaders)
    const status = incoming.statusCode ?? 502
    await passAnswer(incoming, response, status, headers)
    return { status, refused }
  } finally {
    way.signal.removeEventListener("abort", cut)
    response.off("close", gone)
    request.unpipe(sent)
    // What is left of the body nobody wants.
    request.resume()
    sent.destroy()
  }
}

/** Asks for a WebSocket. Only when the gateway has agreed do bytes pass unread. */
export async function relaySocket(client: Duplex, head: Buffer, way: Way): Promise<Relayed> {
  const sent = ask({ ...way, head: [...way.head, "Connection", "Upgrade", "Upgrade", "websocket"] })
  const cut = (): void => {
    sent.destroy()
    client.destroy()
  }
  client.on("error", cut)
  client.once("close", cut)
  way.signal.addEventListener("abort", cut, { once: true })
  try {
    const upgraded = new Promise<{ incoming: IncomingMessage; socket: Duplex; first: Buffer }>((resolve) =>
      sent.once("upgrade", (incoming, socket, first) => resolve({ incoming, socket, first })),
    )
    const answered = answerTo(sent).then((incoming) => ({ incoming, socket: undefined, first: Buffer.alloc(0) }))
    // It fails when the connection is given up for the other protocol, which is no failure.
    answered.catch(() => undefined)
    sent.end()
    const { incoming, socket, first } = await Promise.race([upgraded, answered])
    const { headers, refused } = answerHead(incoming.rawHeaders)
    const status = incoming.statusCode ?? 502
    const more = socket ? { connection: "Upgrade", upgrade: "websocket" } : { connection: "close" }
    client.write(headText(status, incoming.statusMessage ?? "", { ...headers, ...more }))
    if (socket) {
      if (head.length > 0) socket.write(head)
      if (first.length > 0) client.write(first)
      await joined(client, socket)
    } else await poured(incoming, client)
    return { status, refused }
  } finally {
    way.signal.removeEventListener("abort", cut)
    sent.destroy()
  }
}

function ask({ socketPath, path, method, head }: Way): ClientRequest {
  const options = { socketPath, path, method, headers: [...head], setHost: false, agent: false as const }
  const sent = httpRequest({ ...options, maxHeaderSize: headBytesMax })
  sent.setTimeout(answerMs, () => sent.destroy(new Fault("timeout", "the runner did not answer in time")))
  return sent
}

function answerTo(sent: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    sent.once("response", (incoming) => {
      // Said once that it is there, it may be silent for as long as its program is.
      sent.setTimeout(0)
      resolve(incoming)
    })
    sent.once("upgrade", () => sent.setTimeout(0))
    sent.on("error", (cause) => reject(cause instanceof Fault ? cause : away(cause)))
    sent.once("close", () => reject(away(undefined)))
  })
}

function away(cause: unknown): Fault {
  return new Fault("unavailable", "the runner of this session does not answer", {
    cause,
    hint: "try again in a moment",
  })
}

async function passAnswer(
  incoming: IncomingMessage,
  response: AnyResponse,
  status: number,
  headers: Record<string, string | string[]>,
): Promise<void> {
  if (response.destroyed) return void incoming.destroy()
  if ("sendDate" in response) response.sendDate = false
  ;(response as ServerResponse).writeHead(status, headers)
  // A stream of events begins long before its first event.
  if ("flushHeaders" in response) response.flushHeaders()
  await poured(incoming, response as unknown as Duplex, () => {
    const trailers = Object.entries(incoming.trailers).filter(([, value]) => value !== undefined)
    if (trailers.length > 0) (response as ServerResponse).addTrailers(Object.fromEntries(trailers))
  })
}

/** Like a pipeline, with something to say before the end. */
function poured(from: IncomingMessage, to: Duplex, beforeEnd: () => void = () => undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (cause?: Error): void => {
      from.destroy()
      to.destroy()
      reject(new Fault("cancelled", "the connection broke", { cause }))
    }
    from.once("error", fail).once("close", () => {
      if (!from.readableEnded) fail()
    })
    to.once("error", fail)
    to.once("close", () => (to.writableFinished ? resolve() : fail()))
    to.once("finish", resolve)
    from.once("end", () => {
      beforeEnd()
      to.end()
    })
    from.pipe(to, { end: false })
  })
}

/** Until both have ended; one that breaks takes the other with it. */
function joined(a: Duplex, b: Duplex): Promise<void> {
  a.pipe(b)
  b.pipe(a)
  a.resume()
  b.resume()
  const closed = (one: Duplex, other: Duplex): Promise<void> =>
    new Promise((resolve) => {
      const end = (): void => {
        other.destroy()
        resolve()
      }
      if (one.closed) return end()
      one.on("error", () => one.destroy())
      one.once("close", end)
    })
  return Promise.all([closed(a, b), closed(b, a)]).then(() => undefined)
}

/** What was read from one head is safe to write into another: the parser lets no line end into a name or a value. */
export function headText(status: number, reason: string, headers: Readonly<Record<string, string | string[]>>): string {
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((one) => `${name}: ${one}\r\n`),
  )
  return `HTTP/1.1 ${status} ${reason}\r\n${lines.join("")}\r\n`
}
