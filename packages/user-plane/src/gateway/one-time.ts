import type { Clock } from "@warren/base/clock.ts"
import { keepNewest } from "@warren/base/keep-newest.ts"
import { ticketPrefix } from "./credentials.ts"
import { hashOf, secretFor, type Grant } from "./grants.ts"
import { gatewayLimits } from "./limits.ts"

interface Ticket {
  readonly grant: Grant
  readonly host: string
  readonly endsAt: number
}

/** What may be used once: tickets from the gateway's paths to a preview's own host name, and tokens that were in a URL. */
export class OneTime {
  readonly #clock: Clock
  readonly #tickets = new Map<string, Ticket>()
  /** Until when it would have been good. */
  readonly #burned = new Map<string, number>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  ticket(grant: Grant, host: string): string {
    const value = `${ticketPrefix}${secretFor(grant)}`
    keepNewest(this.#tickets, gatewayLimits.ticketsMax, hashOf(value), {
      ...{ grant, host },
      endsAt: this.#clock.monotonic() + gatewayLimits.ticketMs,
    })
    return value
  }

  /** What it was made for; whatever comes of it, it is used now. */
  redeem(value: string, host: string): Grant | undefined {
    const key = hashOf(value)
    const ticket = this.#tickets.get(key)
    this.#tickets.delete(key)
    return ticket && ticket.host === host && this.#clock.monotonic() < ticket.endsAt ? ticket.grant : undefined
  }

  /** False when it was burned before. */
  burn(token: string, forMs: number): boolean {
    if (this.isBurned(token)) return false
    keepNewest(this.#burned, gatewayLimits.burnedMax, hashOf(token), this.#clock.monotonic() + forMs)
    return true
  }

  isBurned(token: string): boolean {
    return (this.#burned.get(hashOf(token)) ?? 0) > this.#clock.monotonic()
  }
}
