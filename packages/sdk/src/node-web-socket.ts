import { WebSocket } from "ws"
import type { Socket } from "./web-socket.ts"

export interface Patience {
  readonly lookMs: number
  /** So many looks without a word, and nobody is there. Looks, not time: who was busy has heard nothing meanwhile. */
  readonly looksMax: number
}

/** A server that is there says so every 15 seconds. */
const usual: Patience = { lookMs: 15_000, looksMax: 4 }

/**
 * Node 20 has none of its own, and a program has no cookie. One on which nothing is heard any more is lost: a line that was unplugged
 * somewhere never says so.
 */
export function openSocket(
  url: string,
  headers: Readonly<Record<string, string>>,
  { lookMs, looksMax }: Patience = usual,
): Socket {
  const socket = new WebSocket(url, { headers, perMessageDeflate: false })
  let silent = 0
  const heard = (): void => void (silent = 0)
  const timer = setInterval(() => {
    // Who does not read hears nothing, and has to say that they are there: they answer no ping.
    if (socket.isPaused) socket.ping(heard)
    if (silent++ >= looksMax) socket.terminate()
  }, lookMs)
  for (const sign of ["upgrade", "ping", "message"]) socket.on(sign, heard)
  socket.on("close", () => clearInterval(timer))
  return socket as unknown as Socket
}
