import { setTimeout as sleep } from "node:timers/promises"

/** Time, passed in, so that a test can drive it. */
export interface Clock {
  /** Milliseconds since 1970: for showing and storing. It may jump. */
  now(): number
  /** Milliseconds that only go forward: for measuring and for deadlines. */
  monotonic(): number
  /** Rejects with the signal's reason when it is aborted first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** Told to wait longer, a timer of the platform does not wait at all. */
const timerMsMax = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  async sleep(ms, signal) {
    const until = performance.now() + ms
    try {
      let left = ms
      do await sleep(Math.min(left, timerMsMax), undefined, signal ? { signal } : {})
      while ((left = until - performance.now()) >= 1)
    } catch (cause) {
      throw signal?.reason ?? cause
    }
  },
}

interface Sleeper {
  readonly at: number
  wake(): void
}

/** A clock that stands still until told otherwise. */
export class ManualClock implements Clock {
  #wall: number
  #elapsed = 0
  #sleepers: Sleeper[] = []

  constructor(startMs = 1_700_000_000_000) {
    this.#wall = startMs
  }

  now(): number {
    return this.#wall
  }

  monotonic(): number {
    return this.#elapsed
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const forget = (): void => {
        this.#sleepers = this.#sleepers.filter((other) => other !== sleeper)
        signal?.removeEventListener("abort", abort)
      }
      const abort = (): void => {
        forget()
        reject(signal?.reason)
      }
      const sleeper: Sleeper = {
        at: this.#elapsed + ms,
        wake() {
          forget()
          resolve()
        },
      }
      signal?.addEventListener("abort", abort, { once: true })
      this.#sleepers.push(sleeper)
    })
  }

  /** How many wait: a test advances once the code under test has gone to sleep. */
  get sleeping(): number {
    return this.#sleepers.length
  }

  /** Moves both clocks on, waking sleepers in the order of their times. */
  async advance(ms: number): Promise<void> {
    const end = this.#elapsed + ms
    for (;;) {
      const [next] = this.#sleepers.filter((sleeper) => sleeper.at <= end).toSorted((a, b) => a.at - b.at)
      if (!next) break
      this.#step(next.at - this.#elapsed)
      next.wake()
      // Whoever woke may go to sleep again within this advance.
      await new Promise(setImmediate)
    }
    this.#step(end - this.#elapsed)
  }

  /** The wall clock jumps (NTP, suspend); the monotonic one does not. */
  jump(ms: number): void {
    this.#wall += ms
  }

  #step(ms: number): void {
    this.#elapsed += ms
    this.#wall += ms
  }
}
