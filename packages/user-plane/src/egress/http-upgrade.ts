import type { ClientRequest, IncomingMessage } from "node:http"
import type { Socket } from "node:net"
import { pipeline } from "node:stream/promises"
import { endToEnd, pairsOf, valuesOf } from "./headers.ts"
import { splice } from "./splice.ts"

/** What a request that wants another protocol (WebSocket) says about it, for the next connection. */
export function upgradeHeaders(message: IncomingMessage): string[] {
  return ["Connection", "Upgrade", "Upgrade", valuesOf(message.rawHeaders, "upgrade")[0] ?? ""]
}

/**
 * Asks for another protocol. Only when the other end has agreed do bytes pass unread: otherwise the next request on this connection
 * would go unchecked.
 */
export async function upgrade(client: Socket, sent: ClientRequest): Promise<void> {
  const answer = await new Promise<{ incoming: IncomingMessage; socket?: Socket; head?: Buffer }>((resolve, reject) => {
    sent.once("upgrade", (incoming, socket, head) => resolve({ incoming, socket, head }))
    sent.once("response", (incoming) => resolve({ incoming }))
    sent.on("error", reject)
    sent.once("close", () => reject(new Error("the connection closed without an answer")))
    client.once("close", () => sent.destroy())
    sent.end()
  })
  const { incoming, socket, head } = answer
  const more = socket ? upgradeHeaders(incoming) : ["Connection", "close"]
  client.write(headOf(incoming, more))
  if (!socket) return await pipeline(incoming, client)
  if (head) socket.unshift(head)
  await splice(client, socket)
}

function headOf(incoming: IncomingMessage, more: readonly string[]): string {
  const lines = [...pairsOf([...endToEnd(incoming.rawHeaders), ...more])].map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  return `HTTP/1.1 ${incoming.statusCode} ${incoming.statusMessage}\r\n${lines.join("")}\r\n`
}
