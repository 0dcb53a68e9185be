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
  readonly #runs = new Map<LeaseId, Set<(cut: Cut) => void>>()

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
    const siblings = this.#runs.get(lease.id) ?? new Set()
    this.#runs.set(lease.id, siblings.add(end))
    void this.#expiry(lease, done.signal).then((isExpired) => isExpired && end("expired"))
    const dispose = (): void => {
      done.abort()
      siblings.delete(end)
      if (siblings.size === 0) this.#runs.delete(lease.id)
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
    for (const end of this.#runs.get(id) ?? []) end("revoked")
  }

  /** Everything, when nobody is left to answer. */
  close(): void {
    for (const id of this.#runs.keys()) this.revoke(id)
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
