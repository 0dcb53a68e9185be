import type { Clock } from "@warren/base/clock.ts"
import { keepNewest } from "@warren/base/keep-newest.ts"

interface Bucket {
  left: number
  at: number
}

/** Keys remembered at once. A forgotten one begins anew, full. */
const keysMax = 20_000
const burstS = 10

/** Lets each key do something so often in a minute: some of it at once, the rest as time goes by. */
export class Buckets {
  readonly #clock: Clock
  readonly #buckets = new Map<string, Bucket>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** 0 when it may; otherwise the seconds until it may again. */
  take(key: string, perMinute: number, burst = Math.max(1, (perMinute / 60) * burstS)): number {
    const now = this.#clock.monotonic()
    const bucket = this.#buckets.get(key) ?? { left: burst, at: now }
    const left = Math.min(burst, bucket.left + ((now - bucket.at) / 60_000) * perMinute)
    const isAllowed = left >= 1
    keepNewest(this.#buckets, keysMax, key, { left: isAllowed ? left - 1 : left, at: now })
    return isAllowed ? 0 : Math.ceil(((1 - left) / perMinute) * 60)
  }
}
