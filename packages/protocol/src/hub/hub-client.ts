import type { Duplex } from "node:stream"
import type { Clock } from "@warren/base/clock.ts"
import { Fault, messageOf } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import { backoffMs } from "@warren/base/retry.ts"
import { hubLimits, replaced } from "./frames.ts"
import { HubSocket } from "./hub-socket.ts"
import type { Wire } from "./reliable-link.ts"

/** Streams to the hub, one after the other. */
export type Dial = (signal: AbortSignal) => Promise<Duplex>

/** The end of a link that a connection is given to. */
interface LinkEnd {
  attach(wire: Wire): void
  detach(wire: Wire): void
  receive(wire: Wire, text: string): void
  ping(): void
}

export interface HubClientOptions {
  readonly link: LinkEnd
  readonly dial: Dial
  readonly token: string
  readonly clock: Clock
  readonly log: Log
}

/** Turned away so often in a row: the token is not good any more. */
const refusedMax = 5

/** A supervisor's way to its hub: connected again whenever it is not, until it is told to leave. */
export class HubClient {
  readonly #options: HubClientOptions
  #attempt = 0
  #refused = 0

  constructor(options: HubClientOptions) {
    this.#options = options
  }

  /** Resolves when it was replaced; rejects when it was turned away for good, or with the signal's reason. */
  async run(signal: AbortSignal): Promise<void> {
    const { log, clock } = this.#options
    for (;;) {
      signal.throwIfAborted()
      try {
        if ((await this.#visit(signal)) === "replaced") return
      } catch (failure) {
        signal.throwIfAborted()
        if (Fault.from(failure).code === "unauthenticated" && ++this.#refused >= refusedMax) throw failure
        log("warn", "hub.unreachable", { message: messageOf(failure) })
      }
      await clock.sleep(backoffMs(++this.#attempt, hubLimits.backoffMs), signal)
    }
  }

  async #visit(signal: AbortSignal): Promise<"replaced" | "lost"> {
    const { link, dial, token, clock, log } = this.#options
    const socket = await HubSocket.ask(await dial(signal), { token, clock })
    const stop = (): void => socket.cut()
    signal.addEventListener("abort", stop, { once: true })
    try {
      // In this order: what has come already is for the link as it is then.
      link.attach(socket)
      socket.listen((text) => {
        this.#attempt = this.#refused = 0
        link.receive(socket, text)
      })
      const over = new AbortController()
      void this.#ping(over.signal)
      const { code, reason } = await socket.closed
      over.abort()
      log("info", "hub.closed", { code, reason })
      return code === replaced.code && reason === replaced.reason ? "replaced" : "lost"
    } finally {
      signal.removeEventListener("abort", stop)
      link.detach(socket)
    }
  }

  async #ping(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#options.clock.sleep(hubLimits.pingMs, signal).catch(() => undefined)
      if (!signal.aborted) this.#options.link.ping()
    }
  }
}
