import type { Output } from "@warren/sdk/routes.ts"

export type Stats = Output<"GET /v1/sessions/{id}/stats">

export interface Sample {
  readonly atMs: number
  readonly stats: Stats
}

/** How quickly something that only grows has grown, per second, between one sample and the next. */
export function rates(samples: readonly Sample[], of: (stats: Stats) => number): number[] {
  return samples.slice(1).map(({ atMs, stats }, index) => {
    const before = samples[index]
    const ms = atMs - (before?.atMs ?? atMs)
    // A sandbox that was started anew counts from nothing.
    return before && ms > 0 ? (Math.max(0, of(stats) - of(before.stats)) / ms) * 1_000 : 0
  })
}
