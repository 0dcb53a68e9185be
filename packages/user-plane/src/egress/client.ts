import type { Socket } from "node:net"
import { Fault } from "@warren/base/fault.ts"
import type { Target } from "./host.ts"

/** Where every request on a connection goes, when the client said so before it began to speak HTTP. */
export interface Fixed {
  readonly target: Target
  /** Dialled already, for the first request. */
  spare: Socket | undefined
}

/** One connection from the sandbox. */
export class Client {
  readonly socket: Socket
  fixed: Fixed | undefined
  readonly #gone = new AbortController()
  readonly #onLate: (client: Client) => void
  #timer: NodeJS.Timeout | undefined
  /** Requests being answered: a client may send several at once. */
  #busy = 0

  constructor(socket: Socket, idleMs: number, onLate: (client: Client) => void) {
    this.socket = socket
    this.#onLate = onLate
    // The other side of a tunnel may still have much to say after the client has said its last.
    socket.allowHalfOpen = true
    socket.on("error", () => socket.destroy())
    socket.setTimeout(idleMs, () => socket.destroy())
    socket.once("close", () => {
      this.relax()
      this.fixed?.spare?.destroy()
      this.#gone.abort(new Fault("cancelled", "the sandbox hung up"))
    })
  }

  /** Aborts when the client is gone. */
  get signal(): AbortSignal {
    return this.#gone.signal
  }

  /** What comes next must be complete in this time, however the bytes drip in. */
  expect(ms: number): void {
    this.#wait(ms, () => this.#onLate(this))
  }

  relax(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** A request has come. Says how many are being answered. */
  begin(): number {
    this.relax()
    return ++this.#busy
  }

  /** It is answered: the next one comes in this time, or the connection is let go. */
  finish(keepAliveMs: number): void {
    if (--this.#busy === 0) this.#wait(keepAliveMs, () => this.socket.destroy())
  }

  takeSpare(): Socket | undefined {
    const spare = this.fixed?.spare
    if (this.fixed) this.fixed.spare = undefined
    return spare?.destroyed === false ? spare : undefined
  }

  #wait(ms: number, act: () => void): void {
    this.relax()
    if (!this.socket.destroyed) this.#timer = setTimeout(act, ms)
  }
}
