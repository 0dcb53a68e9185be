import { Fault } from "@warren/base/fault.ts"
import type { Grant } from "./grants.ts"
import { gatewayLimits } from "./limits.ts"
import { GatewayRefusal } from "./refusal.ts"

/** One request or socket while it lasts. */
export interface Channel extends Disposable {
  /** Aborts when its client is gone, when it is no longer let in, or when the gateway closes. */
  readonly signal: AbortSignal
  abort(reason: Fault): void
}

interface Open {
  readonly grant: Grant
  /** The tunnel it goes through, whoever it was opened for. */
  readonly tunnel: string | undefined
  readonly stop: AbortController
}

/** What is open, so that it can be cut when what let it in is taken away. */
export class Channels {
  readonly #open = new Set<Open>()
  readonly #perSession = new Map<string, number>()

  open(grant: Grant, tunnel: string | undefined): Channel {
    const { session } = grant
    const count = (this.#perSession.get(session) ?? 0) + 1
    if (count > gatewayLimits.exchangesPerSessionMax)
      throw new GatewayRefusal(429, "too much goes on in this session at once")
    const open: Open = { grant, tunnel, stop: new AbortController() }
    this.#perSession.set(session, count)
    this.#open.add(open)
    return {
      signal: open.stop.signal,
      abort: (reason) => open.stop.abort(reason),
      [Symbol.dispose]: () => this.#close(open),
    }
  }

  cut(isCut: (open: Pick<Open, "grant" | "tunnel">) => boolean, why: string): void {
    for (const open of this.#open) if (isCut(open)) open.stop.abort(new Fault("cancelled", why))
  }

  #close(open: Open): void {
    if (!this.#open.delete(open)) return
    const { session } = open.grant
    const left = (this.#perSession.get(session) ?? 1) - 1
    if (left > 0) this.#perSession.set(session, left)
    else this.#perSession.delete(session)
  }
}
