import { defineMetric, elapsedMs, type Metric } from "./metric.ts"
import { Sandboxes } from "./sandboxes.ts"

/** A snapshot of a running sandbox that has written so much, against one that has written 10 MB. */
export function snapshotAt(name: string, megabytes: number): Metric {
  return defineMetric({
    name,
    unit: "ms",
    goal: { ratioMax: 1.5 },
    samples: { full: 100, quick: 10 },
    prepare: (context) => Sandboxes.ofTwoSizes(context, megabytes),
    run: ({ sandboxes, large }) => sandboxes.snapshot(large, elapsedMs),
    baseline: { name: "at 10 MB", run: ({ sandboxes, small }) => sandboxes.snapshot(small, elapsedMs) },
  })
}
