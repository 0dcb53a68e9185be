import type { Clock } from "@warren/base/clock.ts"
import type { Facts } from "./health.ts"
import type { Live } from "./sandboxes.ts"
import type { SessionId, SessionRecord } from "./session-record.ts"

/**
 * A session that is not over, in memory. Its times are kept by the clock that only goes forward: a wall clock that jumps ends
 * nothing.
 */
export class Entry {
  record: SessionRecord
  /** While its sandbox runs, frozen or not. */
  live: Live | undefined
  /** How often what it ran in was ended. */
  endings = 0
  hasDied = false
  /** The rest of what it was on its way to when something failed: whoever comes next does it first. */
  unfinished: (() => Promise<void>) | undefined
  inside: Facts["inside"] = "unknown"
  readonly #clock: Clock
  readonly #madeAt: number
  #usedAt: number
  #awakeUntil = 0
  #snapshotAt: number
  #uses = 0

  constructor(record: SessionRecord, clock: Clock) {
    this.record = record
    this.#clock = clock
    const [now, wall] = [clock.monotonic(), clock.now()]
    this.#madeAt = now - Math.max(0, wall - record.createdAt)
    this.#usedAt = now - Math.max(0, wall - record.usedAt)
    this.#snapshotAt = now
  }

  get id(): SessionId {
    return this.record.id
  }

  /** Something begins that counts as use; the result ends it. */
  begin(): Disposable {
    this.#uses++
    this.used()
    let isOver = false
    return {
      [Symbol.dispose]: () => {
        if (isOver) return
        isOver = true
        this.#uses--
        this.used()
      },
    }
  }

  /** Its sandbox is about to be ended: nobody is given it any more. */
  end(): Live | undefined {
    const { live } = this
    this.live = undefined
    this.endings++
    return live
  }

  used(): void {
    this.#usedAt = this.#clock.monotonic()
    this.inside = "unknown"
    this.record = { ...this.record, usedAt: this.#clock.now() }
  }

  /** Something inside goes on: it is not idle, and is looked at again when it has been quiet as long as its policy says. */
  foundBusy(): void {
    this.#awakeUntil = Math.max(this.#awakeUntil, this.#clock.monotonic() + lookAgainMs)
    this.inside = "unknown"
  }

  keepAwake(ms: number): void {
    this.#awakeUntil = this.#clock.monotonic() + ms
  }

  tookSnapshot(): void {
    this.#snapshotAt = this.#clock.monotonic()
  }

  facts(): Facts {
    const { state, ttlMs, lifeMs, lifeAction, idle, snapshots } = this.record
    const now = this.#clock.monotonic()
    return {
      state,
      hasDied: this.hasDied,
      isUnfinished: this.unfinished !== undefined,
      isBusy: this.#uses > 0,
      inside: this.inside,
      sinceUseMs: this.#uses > 0 ? 0 : now - this.#usedAt,
      ageMs: now - this.#madeAt,
      awakeMs: Math.max(0, this.#awakeUntil - now),
      ttlMs,
      lifeMs,
      lifeAction,
      idle,
      snapshots: snapshots && { everyMs: snapshots.everyMs, sinceMs: now - this.#snapshotAt },
    }
  }
}

/** How soon a session that was found busy inside is looked at again. */
const lookAgainMs = 5_000
