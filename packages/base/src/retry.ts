import { systemClock, type Clock } from "./clock.ts"
import { Fault } from "./fault.ts"

export interface RetryOptions {
  /** Tries altogether, the first included. */
  readonly triesMax: number
  readonly baseMs: number
  readonly capMs: number
  readonly isRetryable?: (thrown: unknown) => boolean
  readonly signal?: AbortSignal
  readonly clock?: Clock
  readonly random?: () => number
}

/** The wait before try number `attempt` (from 1): anything between nothing and the doubled, capped base ("full jitter"). */
export function backoffMs(
  attempt: number,
  options: Pick<RetryOptions, "baseMs" | "capMs">,
  random = Math.random,
): number {
  return random() * Math.min(options.capMs, options.baseMs * 2 ** (attempt - 1))
}

/** Tries again what is worth trying again; the last failure travels on as it is. */
export async function retry<T>(work: (attempt: number) => Promise<T>, options: RetryOptions): Promise<T> {
  const clock = options.clock ?? systemClock
  const isRetryable = options.isRetryable ?? ((thrown) => thrown instanceof Fault && thrown.isRetryable)
  for (let attempt = 1; ; attempt++) {
    options.signal?.throwIfAborted()
    try {
      return await work(attempt)
    } catch (thrown) {
      if (attempt >= options.triesMax || !isRetryable(thrown)) throw thrown
      await clock.sleep(backoffMs(attempt, options, options.random), options.signal)
    }
  }
}
