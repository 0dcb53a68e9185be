import type { IncomingMessage } from "node:http"
import type { Socket } from "node:net"
import { pipeline } from "node:stream/promises"
import { pairsOf, valuesOf } from "../egress/headers.ts"
import { splice } from "../egress/splice.ts"
import { failureOf, insideRequest, type Outgoing } from "./exchange.ts"
import { GatewayRefusal } from "./refusal.ts"

interface SocketExchange extends Outgoing {
  answerHead(raw: readonly string[]): readonly string[]
}

/**
 * Asks the program inside for a WebSocket. Only when it has agreed do bytes pass unread; what it says otherwise is the answer,
 * and the connection's end.
 */
export async function socketExchange(client: Socket, to: SocketExchange): Promise<void> {
  const sent = insideRequest({ ...to, head: [...to.head, "Connection", "Upgrade", "Upgrade", "websocket"] }, undefined)
  const cut = (): void => {
    sent.destroy()
    client.destroy()
  }
  to.signal.addEventListener("abort", cut, { once: true })
  try {
    const { incoming, socket, head } = await answerTo(sent)
    const isAgreed = socket && valuesOf(incoming.rawHeaders, "upgrade")[0]?.toLowerCase() === "websocket"
    if (socket && !isAgreed) throw new GatewayRefusal(502, "the program changed to another protocol than was asked for")
    const more = socket ? ["Connection", "Upgrade", "Upgrade", "websocket"] : ["Connection", "close"]
    client.write(headText(incoming, [...to.answerHead(incoming.rawHeaders), ...more]))
    if (!socket) return await pipeline(incoming, client)
    if (head.length > 0) socket.unshift(head)
    await splice(client, socket)
  } finally {
    to.signal.removeEventListener("abort", cut)
    sent.destroy()
  }
}

interface Answer {
  readonly incoming: IncomingMessage
  readonly socket?: Socket
  readonly head: Buffer
}

function answerTo(sent: ReturnType<typeof insideRequest>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    sent.once("upgrade", (incoming, socket: Socket, head) => resolve({ incoming, socket, head }))
    sent.once("response", (incoming) => resolve({ incoming, head: Buffer.alloc(0) }))
    sent.on("error", (cause) => reject(failureOf(cause)))
    sent.once("close", () => reject(new GatewayRefusal(502, "the program closed the connection without an answer")))
    sent.end()
  })
}

/** What was read from one head is safe to write into another: the parser lets no line end into a name or a value. */
export function headText(
  { statusCode = 502, statusMessage = "" }: Pick<IncomingMessage, "statusCode" | "statusMessage">,
  head: readonly string[],
): string {
  const lines = [...pairsOf(head)].map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${statusCode} ${statusMessage}\r\n${lines.join("")}\r\n`
}
