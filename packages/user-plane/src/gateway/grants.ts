import { createHash, randomBytes } from "node:crypto"
import type { Clock } from "@warren/base/clock.ts"
import { keepNewest } from "@warren/base/keep-newest.ts"
import { gatewayLimits } from "./limits.ts"

/** Who was let in, and to what. */
export interface Grant {
  readonly user: string
  readonly session: string
  /** A port or a tunnel's name: one preview's cookie is nothing to another. */
  readonly target: string
  /** With it, the link's tunnel: worth nothing without it. */
  readonly tunnel?: string | undefined
  /** Also what Warren itself keeps in the session: a terminal, an editor, a desktop. */
  readonly tools?: boolean | undefined
  /** It was opened in a frame of a page of another site: browsers keep cookies for that apart. */
  readonly isFramed?: boolean | undefined
  /** The sign-in or token it goes back to. */
  readonly via?: string | undefined
  /** Where a token was for one port only: a name that leads to another port later is not what was granted. */
  readonly port?: number | undefined
}

interface Kept {
  readonly grant: Grant
  readonly endsAt: number
  goodUntil: number
  sentAt: number
}

/**
 * The cookies that were given. They are random and known here only by their hashes; a runner that starts again knows none,
 * and browsers are sent to sign in again.
 */
export class Grants {
  readonly #clock: Clock
  readonly #kept = new Map<string, Kept>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** A new cookie's value. */
  issue(grant: Grant): string {
    const value = secretFor(grant)
    const now = this.#clock.monotonic()
    const { cookieIdleMs, cookieLifeMs, cookiesMax } = gatewayLimits
    const kept = { grant, endsAt: now + cookieLifeMs, goodUntil: now + cookieIdleMs, sentAt: now }
    keepNewest(this.#kept, cookiesMax, hashOf(value), kept)
    return value
  }

  /** What the first good one of these cookies grants for this, and its value when the browser should be told again to keep it. */
  find(
    values: readonly string[],
    wanted: Pick<Grant, "session" | "target">,
  ): { grant: Grant; again?: string } | undefined {
    const now = this.#clock.monotonic()
    for (const value of values) {
      const key = hashOf(value)
      const kept = this.#kept.get(key)
      if (!kept || kept.grant.session !== wanted.session || kept.grant.target !== wanted.target) continue
      this.#kept.delete(key)
      if (now >= kept.goodUntil || now >= kept.endsAt) continue
      kept.goodUntil = now + gatewayLimits.cookieIdleMs
      // Last again: what is dropped for want of room is what nobody uses.
      this.#kept.set(key, kept)
      if (now - kept.sentAt < gatewayLimits.cookieAgainMs) return { grant: kept.grant }
      kept.sentAt = now
      return { grant: kept.grant, again: value }
    }
    return undefined
  }
}

/** Random, and behind it for the control plane what it goes back to: without that it lets nobody in. Its hash is of both. */
export function secretFor({ via }: Grant): string {
  return `${randomBytes(32).toString("base64url")}${via === undefined ? "" : `.${via}`}`
}

export function hashOf(value: string): string {
  return createHash("sha256").update(value).digest("base64url")
}
