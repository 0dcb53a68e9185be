import { randomInt } from "node:crypto"
import { Fault } from "@warren/base/fault.ts"

/** Ids one sandbox has inside, 0 to 65535. */
export const rangeSize = 65_536
/** Above what `useradd` hands out as subordinate ids (up to 600,100,000) and below what is special. */
const first = 0x4000_0000
const slots = 0xb000

/**
 * Gives every sandbox host ids of its own. Chosen at random among the free ones, so that a range just given back is not the
 * next to be handed out, and two Warrens on one machine rarely meet.
 */
export class IdRanges {
  readonly #taken = new Set<number>()

  take(): number {
    if (this.#taken.size >= slots / 2)
      throw new Fault("limit", "there are too many sandboxes for the ids of this machine")
    for (;;) {
      const base = first + randomInt(slots) * rangeSize
      if (this.#taken.has(base)) continue
      this.#taken.add(base)
      return base
    }
  }

  /** Marks a range that a sandbox from an earlier process has. */
  keep(base: number): void {
    this.#taken.add(base)
  }

  give(base: number): void {
    this.#taken.delete(base)
  }
}
