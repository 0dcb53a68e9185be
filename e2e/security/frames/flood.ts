import type { Chance } from "../../api/chance.ts"
import { encodeJson, encodeStream } from "@warren/base/frame.ts"
import { garbled, spoiled } from "./spoil.ts"

export type Message = Record<string, unknown>

/** What goes over one connection: mostly a proper beginning, then anything. */
export interface Burst {
  readonly bytes: Buffer
  readonly frames: number
}

const framesMax = 12

/** Some of the proper messages of a channel, in any order, few of them as they should be. */
export function burstOf(greeting: readonly Message[], proper: readonly Message[], chance: Chance): Burst {
  const frames: Buffer[] = chance.is(0.9) ? greeting.map((message) => encodeJson(message)) : []
  for (let count = 1 + chance.below(framesMax); count > 0; count--) frames.push(frameOf(chance.one(proper), chance))
  return { bytes: Buffer.concat(frames), frames: frames.length }
}

function frameOf(message: Message, chance: Chance): Buffer {
  if (chance.is(0.08)) return encodeStream(chance.one([1, 2, 3, 4] as const), Buffer.alloc(chance.below(300), 120))
  const frame = encodeJson(chance.is(0.7) ? spoiled(message, chance) : message)
  return chance.is(0.15) ? garbled(frame, chance) : frame
}

/** As texts, for a channel that has frames of its own below. */
export function textOf(proper: readonly Message[], chance: Chance): string {
  const message = chance.one(proper)
  const text = JSON.stringify(chance.is(0.7) ? spoiled(message, chance) : message)
  return chance.is(0.1) ? garbled(Buffer.from(`    ${text}`), chance).toString() : text
}
