import { defineMetric, elapsedMs } from "../metric.ts"
import { Sandboxes } from "../sandboxes.ts"

const forks = 20

/** Twenty forks of a running sandbox that has written 1 GB, against one that has written 100 MB: from the call until all are started. */
export const metric = defineMetric({
  name: "fork.twenty",
  unit: "ms",
  goal: { ratioMax: 1.5, p50Max: 1_000 },
  samples: { full: 30, quick: 5 },
  async prepare(context) {
    const sandboxes = await Sandboxes.open(context)
    const large = await sandboxes.create()
    const small = await sandboxes.create()
    await sandboxes.write(large, 1_000)
    await sandboxes.write(small, 100)
    return { sandboxes, large, small }
  },
  run: ({ sandboxes, large }) => sandboxes.fork(large, forks, elapsedMs),
  baseline: { name: "at 100 MB", run: ({ sandboxes, small }) => sandboxes.fork(small, forks, elapsedMs) },
})
