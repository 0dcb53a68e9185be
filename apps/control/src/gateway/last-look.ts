import type { EventEmitter } from "node:events"
import type { IncomingMessage } from "node:http"
import { setImmediate as nextTurn } from "node:timers/promises"

/** Who has not said what they want in time may have done so, and we were too busy to hear it: before they are sent away, all is read once more. */
export class LastLook {
  readonly #heard = new WeakSet<object>()

  /** Beside whoever answers. */
  guard(server: EventEmitter): void {
    for (const event of ["request", "upgrade", "checkContinue"])
      server.on(event, ({ socket }: IncomingMessage) => void this.#heard.add(socket))
  }

  async isSilent(socket: object): Promise<boolean> {
    this.#heard.delete(socket)
    // Timers come before what has arrived, and this after it.
    await nextTurn()
    return !this.#heard.has(socket)
  }
}
