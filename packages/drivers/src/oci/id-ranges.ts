import { randomInt } from "node:crypto"
import { Fault } from "@warren/base/fault.ts"

/** Ids one sandbox has inside, 0 to 65535. */
export const rangeSize = 65_536

/** Where ranges are taken from: `slots` of them, one behind the other. */
export interface IdSpace {
  readonly first: number
  readonly slots: number
  /** Whether a range may be given twice when all are taken. */
  readonly isShared: boolean
}

/** Root's: above what `useradd` hands out as subordinate ids (up to 600,100,000) and below what is special. */
export const highIds: IdSpace = { first: 0x4000_0000, slots: 0xb000, isShared: false }

/**
 * Gives every sandbox host ids of its own. Chosen at random among the free ones, so that a range just given back is not the
 * next to be handed out, and two Warrens on one machine rarely meet.
 */
export class IdRanges {
  readonly #space: IdSpace
  readonly #taken = new Map<number, number>()

  constructor(space: IdSpace = highIds) {
    this.#space = space
  }

  take(): number {
    const { slots, isShared } = this.#space
    if (!isShared && this.#taken.size >= slots / 2)
      throw new Fault("limit", "there are too many sandboxes for the ids of this machine")
    const isFull = this.#taken.size >= slots
    for (;;) {
      const base = this.#space.first + randomInt(slots) * rangeSize
      if (!isFull && this.#taken.has(base)) continue
      this.keep(base)
      return base
    }
  }

  /** Marks a range that a sandbox from an earlier process has. */
  keep(base: number): void {
    this.#taken.set(base, this.#holders(base) + 1)
  }

  give(base: number): void {
    const left = this.#holders(base) - 1
    if (left > 0) this.#taken.set(base, left)
    else this.#taken.delete(base)
  }

  /** Whether more than one sandbox has it, or will when there is a second. A range from elsewhere is everybody's who stands on the same images. */
  isShared(base: number): boolean {
    return this.#holders(base) > 1 || this.#space.slots < 2 || base < this.#space.first
  }

  #holders(base: number): number {
    return this.#taken.get(base) ?? 0
  }
}
