import { heartbeat, type Beat } from "@warren/protocol/http/heartbeat.ts"
import { WebSocket } from "ws"
import type { Socket } from "./web-socket.ts"

const usual: Beat = { everyMs: 15_000, silentMax: 4 }
const handshakeTimeout = 60_000

/**
 * Node 20 has none of its own, and a program has no cookie. One on which nothing is heard any more is lost: a line that was unplugged
 * somewhere never says so.
 */
export function openSocket(url: string, headers: Readonly<Record<string, string>>, beat = usual): Socket {
  const socket = new WebSocket(url, { headers, perMessageDeflate: false, handshakeTimeout })
  socket.once("open", () => heartbeat(socket, beat))
  return socket as unknown as Socket
}
