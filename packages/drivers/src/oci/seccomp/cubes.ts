import type { Condition } from "./policy.ts"

/** All 32-bit numbers n with (n & mask) === value. */
export interface Cube {
  readonly mask: number
  readonly value: number
}

/** One cube per argument; all have to hold. */
export type Cubes = ReadonlyMap<number, Cube>

/**
 * A condition as a list of cubes, any of which has to hold: libseccomp has no way to say "none of these" about the low half
 * of an argument, but it can compare masked bits.
 */
export function cubesOf({ mask, values, isNot }: Condition): readonly Cube[] {
  return isNot === true ? outside(values, mask) : values.map((value) => ({ mask, value }))
}

/** Both lists at once: every pair, joined. Pairs about the same argument are not needed by our table. */
export function meet(left: readonly Cubes[], right: readonly Cubes[]): readonly Cubes[] {
  return left.flatMap((one) => right.map((other) => new Map([...one, ...other])))
}

/** Walks the bits from the top; a branch that leads to none of the values is a cube of its own. */
function outside(values: readonly number[], within: number, fixed: Cube = { mask: 0, value: 0 }): readonly Cube[] {
  if (values.length === 0) return [fixed]
  const open = (within & ~fixed.mask) >>> 0
  if (open === 0) return []
  const bit = (1 << (31 - Math.clz32(open))) >>> 0
  const mask = (fixed.mask | bit) >>> 0
  const zeros = values.filter((value) => (value & bit) === 0)
  const ones = values.filter((value) => (value & bit) !== 0)
  return [
    ...outside(zeros, within, { mask, value: fixed.value }),
    ...outside(ones, within, { mask, value: (fixed.value | bit) >>> 0 }),
  ]
}
