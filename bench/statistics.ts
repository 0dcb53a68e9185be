import type { Goal } from "./metric.ts"

export interface Summary {
  readonly n: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
}

/** Percentiles by nearest rank: always a value that was measured. p99 is the bad end, whichever end that is. */
export function summarize(samples: readonly number[], isHigherBetter = false): Summary {
  const sorted = samples.toSorted((a, b) => (isHigherBetter ? b - a : a - b))
  const at = (share: number): number => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN
  return { n: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}

/** Whether what was measured is good enough. A goal for a ratio that there is none of is not met. */
export function meets(goal: Goal, p50: number, ratio: number | null): boolean {
  const { ratioMax = Number.POSITIVE_INFINITY, ratioMin = 0, p50Max = Number.POSITIVE_INFINITY } = goal
  const wantsRatio = goal.ratioMax !== undefined || goal.ratioMin !== undefined
  if (ratio === null) return !wantsRatio && p50 <= p50Max
  return ratio <= ratioMax && ratio >= ratioMin && p50 <= p50Max
}

/** Four digits say more than the noise allows already. */
export function rounded(value: number): number {
  return Number(value.toPrecision(4))
}
