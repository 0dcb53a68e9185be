import type { Chance } from "../../api/chance.ts"

type Json = Record<string, unknown>

/** What nobody expects where something else was. */
const oddities: readonly unknown[] = [
  ...[null, true, false, 0, -1, 1, 2 ** 31, 2 ** 53, -(2 ** 53), 1e308, 0.5],
  ...["", "x", "\u0000", "\ud800", "../../etc/passwd", "__proto__", "constructor", "x".repeat(5_000)],
  ...[[], {}, [[]], { type: "x" }, { toString: 1 }, [null], { length: 2 ** 32 }],
]

/** The same message, otherwise: its own fields swapped, dropped, doubled or turned into something else, at any depth. */
export function spoiled(message: Json, chance: Chance): Json {
  const copy = structuredClone(message)
  for (let times = 1 + chance.below(3); times > 0; times--) spoilOnce(copy, chance)
  return copy
}

function spoilOnce(message: Json, chance: Chance): void {
  const keys = Object.keys(message)
  const key = chance.is(0.1) ? chance.one(["id", "seq", "ack", "type", "ev", "__proto__", "call"]) : chance.one(keys)
  if (key === undefined) return
  const value = Object.hasOwn(message, key) ? message[key] : undefined
  if (chance.is(0.5) && typeof value === "object" && value !== null) return spoilOnce(value as Json, chance)
  if (chance.is(0.15)) return void delete message[key]
  // Defined, not assigned: `__proto__` is a field like any other on a wire.
  Object.defineProperty(message, key, {
    value: otherwise(value, chance),
    enumerable: true,
    configurable: true,
    writable: true,
  })
}

function otherwise(value: unknown, chance: Chance): unknown {
  if (chance.is(0.1)) return nested(chance.below(200))
  if (chance.is(0.2) && typeof value === "number") return value + chance.one([-1, 1, 1_000_000])
  return structuredClone(chance.one(oddities))
}

function nested(depth: number): unknown {
  let value: unknown = 1
  for (let level = 0; level < depth; level++) value = level % 2 ? [value] : { a: value }
  return value
}

/** The same bytes, otherwise: flipped, cut, doubled, with another length in front or something in between. */
export function garbled(bytes: Buffer, chance: Chance): Buffer {
  const copy = Buffer.from(bytes)
  switch (chance.below(6)) {
    case 0:
      copy[chance.below(copy.length)] = chance.below(256)
      return copy
    case 1:
      return copy.subarray(0, chance.below(copy.length))
    case 2:
      return Buffer.concat([copy, copy.subarray(chance.below(copy.length))])
    case 3:
      copy.writeUInt32BE(chance.one([0, 1, copy.length, 2 ** 20 + 1, 2 ** 31, 2 ** 32 - 1]), 0)
      return copy
    case 4:
      return Buffer.concat([Buffer.from([0, 0, 0, 1 + chance.below(8)]), copy])
    default: {
      const at = chance.below(copy.length)
      const noise = Buffer.from(Array.from({ length: 1 + chance.below(40) }, () => chance.below(256)))
      return Buffer.concat([copy.subarray(0, at), noise, copy.subarray(at)])
    }
  }
}
