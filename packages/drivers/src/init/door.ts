import type { Socket } from "node:net"
import { Fault } from "@warren/base/fault.ts"
import { connectUnix, type Recycling } from "@warren/base/unix-socket.ts"

/** Some less than init bears: it may not have seen yet that somebody has gone. */
const connectionsMax = 448

/**
 * The way to a sandbox's init. Beyond what that bears nobody is let through: init says why to one that is too many and hangs up, and
 * who is still speaking then finds a broken line and never hears it.
 */
export class InitDoor {
  readonly #path: string
  #open = 0

  constructor(path: string) {
    this.#path = path
  }

  async connect(signal?: AbortSignal): Promise<Socket & Recycling> {
    if (this.#open >= connectionsMax)
      throw new Fault("limit", `${connectionsMax} things at once are all that a sandbox bears`, {
        hint: "wait until some are over",
      })
    this.#open++
    try {
      const socket = await connectUnix(this.#path, signal)
      socket.once("close", () => this.#open--)
      return socket
    } catch (failure) {
      this.#open--
      throw failure
    }
  }
}
