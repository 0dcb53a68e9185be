import { defineMetric, elapsedMs } from "../metric.ts"
import { Sandboxes } from "../sandboxes.ts"

/** A fork of a running sandbox that has written 1 GB, against one that has written 10 MB: from the call until it is started. */
export const metric = defineMetric({
  name: "fork.size",
  unit: "ms",
  goal: { ratioMax: 1.5 },
  samples: { full: 100, quick: 10 },
  prepare: (context) => Sandboxes.ofTwoSizes(context, 1_000),
  run: ({ sandboxes, large }) => sandboxes.fork(large, 1, elapsedMs),
  baseline: { name: "at 10 MB", run: ({ sandboxes, small }) => sandboxes.fork(small, 1, elapsedMs) },
})
