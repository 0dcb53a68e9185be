import { request as httpRequest, type ClientRequest, type IncomingMessage, type ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { pipeline } from "node:stream/promises"
import { endToEnd, framing } from "./headers.ts"
import { authorityOf, type Target } from "./host.ts"

const httpPort = 80

/** The same request on a connection of its own. A redirect is the client's to follow, and is checked again then. */
export function outgoing(
  request: IncomingMessage,
  via: { target: Target; path: string; socket: Socket },
  more: readonly string[] = framing(request.rawHeaders),
): ClientRequest {
  const { target, path, socket } = via
  const host = target.port === httpPort ? authorityOf(target).replace(/:\d+$/, "") : authorityOf(target)
  return httpRequest({
    method: request.method,
    path,
    headers: ["Host", host, ...endToEnd(request.rawHeaders, isOurs), ...more],
    setHost: false,
    createConnection: () => socket,
  })
}

/** `expect` is answered here: the client was told to go on. */
function isOurs(name: string): boolean {
  return name === "host" || name === "expect"
}

/** Sends the request's body on, gives the answer back, each as fast as its reader takes it. */
export async function forward(request: IncomingMessage, response: ServerResponse, sent: ClientRequest): Promise<void> {
  const hungUp = (): void => void sent.destroy()
  // Not the response's: one that waits behind another is not told.
  request.socket.once("close", hungUp)
  const answer = answered(sent)
  // Not a pipeline: an answer that comes before the whole body was taken is an answer.
  request.pipe(sent)
  try {
    const incoming = await answer
    response.sendDate = false
    response.writeHead(incoming.statusCode ?? 502, incoming.statusMessage, endToEnd(incoming.rawHeaders))
    await pipeline(incoming, response)
  } finally {
    request.socket.off("close", hungUp)
    request.unpipe(sent)
    // What is left of the body nobody wants; the connection can go on only when it has passed.
    request.resume()
    sent.destroy()
  }
}

function answered(sent: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    sent.once("response", resolve)
    // Stays: the connection may still break while the answer is read, and then the answer says so.
    sent.on("error", reject)
    sent.once("close", () => reject(new Error("the connection closed without an answer")))
  })
}
