import type { Clock } from "@warren/base/clock.ts"
import { isCancellation } from "@warren/base/fault.ts"
import type { Lease, LeaseId } from "./lease.ts"

/** A timer cannot wait longer at a time. */
const sleepMsMax = 2 ** 31 - 1

/** Why a run was cut. */
export type Cut = "revoked" | "expired"

/** One use of a lease that is under way. */
export interface Run extends Disposable {
  /** Aborts when the lease ends before the run does; the reason is what `fault` makes of it. */
  readonly signal: AbortSignal
  readonly cut: Cut | undefined
}

/** What runs on which lease: a lease that ends takes along what it has begun. */
export class Runs {
  readonly #clock: Clock
  readonly #fault: (cut: Cut) => Error
  readonly #runs = new Set<{ readonly lease: LeaseId; end(cut: Cut): void }>()

  constructor(clock: Clock, fault: (cut: Cut) => Error) {
    this.#clock = clock
    this.#fault = fault
  }

  begin(lease: Lease): Run {
    const ending = new AbortController()
    const done = new AbortController()
    let cut: Cut | undefined
    const end = (why: Cut): void => {
      cut ??= why
      ending.abort(this.#fault(why))
    }
    const running = { lease: lease.id, end }
    this.#runs.add(running)
    void this.#expiry(lease, done.signal).then((isExpired) => isExpired && end("expired"))
    const dispose = (): void => {
      done.abort()
      this.#runs.delete(running)
    }
    return {
      signal: ending.signal,
      get cut() {
        return cut
      },
      [Symbol.dispose]: dispose,
    }
  }

  revoke(id: LeaseId): void {
    for (const { lease, end } of this.#runs) if (lease === id) end("revoked")
  }

  /** Everything, when nobody is left to answer. */
  close(): void {
    for (const { end } of this.#runs) end("revoked")
  }

  /** By the wall clock, which may jump while the timer waits. */
  async #expiry({ expiresAt }: Lease, signal: AbortSignal): Promise<boolean> {
    try {
      for (let left = expiresAt - this.#clock.now(); left > 0; left = expiresAt - this.#clock.now()) {
        await this.#clock.sleep(Math.min(left, sleepMsMax), signal)
      }
      return true
    } catch (thrown) {
      if (isCancellation(thrown)) return false
      throw thrown
    }
  }
}
