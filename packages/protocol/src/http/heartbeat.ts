import type { WebSocket } from "ws"

export interface Beat {
  readonly everyMs: number
  /** So many beats without a sign of life, and nobody is there. Beats, not time: who was busy has heard nothing meanwhile. */
  readonly silentMax: number
}

/** Ten minutes: a client that thinks about what it was told before it reads on answers no pings meanwhile. */
const usual: Beat = { everyMs: 15_000, silentMax: 40 }

/**
 * Of one end of a line: says that it is there, and hangs up when the other one is not: a machine that was put to sleep or unplugged
 * says nothing, what it had opened would count as used for ever, and who waits for it would wait as long.
 */
export function heartbeat(socket: WebSocket, { everyMs, silentMax }: Beat = usual): void {
  let silent = 0
  const heard = (): void => void (silent = 0)
  const timer = setInterval(() => {
    // While nobody reads here, nothing is heard, and no ping is answered: ours says that we are there. What waits to be sent is the
    // kernel's to give up on.
    if (socket.isPaused || socket.bufferedAmount > 0) heard()
    if (silent++ >= silentMax) return socket.terminate()
    socket.ping()
  }, everyMs)
  for (const sign of ["pong", "ping", "message"]) socket.on(sign, heard)
  socket.on("close", () => clearInterval(timer))
}
