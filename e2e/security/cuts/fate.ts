import type { Chance } from "../../api/chance.ts"

/**
 * How a connection ends. `end`: as if both sides had closed it. `reset`: as if both had crashed. `stall`: for a while nothing passes, then it
 * is reset. `late`: one side knows at once, the other believes in it for a while, as when a cable is pulled.
 */
export const endings = ["end", "reset", "stall", "late"] as const
export type Ending = (typeof endings)[number]

/** What happens to one connection: at which byte of which way, or when nothing has passed for so long. */
export interface Fate {
  readonly way: "up" | "down"
  readonly bytes: number
  readonly quietMs: number
  readonly ending: Ending
  readonly stallMs: number
}

const bytesMax = 48 * 1024
const quietMsMax = 1_000
/** What it takes to become a WebSocket: most get further. */
const headBytes = 400
const headShare = 0.1
const stallMsMax = 150
/** So many live long enough for something large to get through. */
const sparedShare = 0.1

/** As often in the first hundred bytes behind its head as in the thousands behind them. */
export function fateOf(chance: Chance): Fate {
  const times = chance.is(sparedShare) ? 10 : 1
  return {
    way: chance.one(["up", "down"]),
    bytes: chance.is(headShare) ? chance.below(headBytes) : headBytes + Math.floor(bytesMax ** chance.next()) * times,
    quietMs: (50 + chance.next() * quietMsMax) * times,
    ending: chance.one(endings),
    stallMs: chance.next() * stallMsMax,
  }
}
