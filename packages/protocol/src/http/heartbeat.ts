import type { WebSocket } from "ws"

export interface Beat {
  readonly everyMs: number
  /** So many beats without a sign of life, and nobody is there. Beats, not time: who was busy has heard nothing meanwhile. */
  readonly silentMax: number
}

/** Two minutes: what is said to a slow reader may be that long on its way before it is asked for a sign of life. */
const usual: Beat = { everyMs: 15_000, silentMax: 8 }

/**
 * Tells whoever reads that the line is there, and hangs up on those who are not: a machine that was put to sleep or unplugged says
 * nothing, and what it had opened would count as used for ever.
 */
export function heartbeat(socket: WebSocket, { everyMs, silentMax }: Beat = usual): void {
  let silent = 0
  const heard = (): void => void (silent = 0)
  const timer = setInterval(() => {
    // While nobody reads here, nothing is heard; and what waits to be sent is the kernel's to give up on.
    if (socket.isPaused || socket.bufferedAmount > 0) heard()
    if (silent++ >= silentMax) return socket.terminate()
    socket.ping()
  }, everyMs)
  for (const sign of ["pong", "ping", "message"]) socket.on(sign, heard)
  socket.on("close", () => clearInterval(timer))
}
