import { WebSocket } from "ws"
import type { Socket } from "./web-socket.ts"

/** Node 20 has none of its own, and a program has no cookie. */
export function openSocket(url: string, headers: Readonly<Record<string, string>>): Socket {
  return new WebSocket(url, { headers, perMessageDeflate: false }) as unknown as Socket
}
