import { randomInt } from "node:crypto"
import { networkInterfaces } from "node:os"
import { Fault } from "@warren/base/fault.ts"

/** Set aside for benchmarks of network devices (RFC 2544): nobody's network, and never routed. */
export const ourRange = "198.18.0.0/15"
const rangeStart = (198 << 24) | (18 << 16)
const slots = 2 ** 15

/** Every device of every Warren on this machine begins so. */
export const anyDevice = "wrn"

/** The cable of one sandbox: a pair of devices, with two of the four addresses of a network of its own. */
export interface Line {
  readonly device: string
  /** Of the host's end. */
  readonly gateway: string
  /** Of the sandbox's end, which is called `eth0`. */
  readonly address: string
}

/** `mark` says whose it is: six digits, the same for all sandboxes of one data folder. */
export function lineOf(mark: string, slot: number): Line {
  const start = rangeStart + slot * 4
  return {
    device: `${anyDevice}${mark}${slot.toString(16).padStart(4, "0")}`,
    gateway: dotted(start + 1),
    address: dotted(start + 2),
  }
}

export function rangeContains(address: string): boolean {
  const [first = 0, second = 0] = address.split(".").map(Number)
  return first === 198 && (second & ~1) === 18
}

function dotted(value: number): string {
  return [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join(".")
}

/** Gives every sandbox a slot of its own: at random, as with user ids, so that two Warrens on one machine rarely meet. */
export class Slots {
  readonly #taken = new Set<number>()

  get isEmpty(): boolean {
    return this.#taken.size === 0
  }

  take(): number {
    if (this.#taken.size >= slots / 2) throw new Fault("limit", "there are too many sandboxes for our addresses")
    const inUse = new Set(
      Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address)),
    )
    for (;;) {
      const slot = randomInt(slots)
      if (this.#taken.has(slot) || inUse.has(lineOf("", slot).gateway)) continue
      this.#taken.add(slot)
      return slot
    }
  }

  /** Marks one that a sandbox from an earlier process has. */
  keep(slot: number): void {
    this.#taken.add(slot)
  }

  give(slot: number): void {
    this.#taken.delete(slot)
  }
}
