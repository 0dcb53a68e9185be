import { defineMetric, elapsedMs, type Metric } from "./metric.ts"
import { inParallel, Sandboxes } from "./sandboxes.ts"

/** Sandboxes of one sample. */
const batch = 64

/** How many sandboxes come and go in a second (create, start, destroy) when `width` of them are under way at any moment. */
export function parallelCreates(width: number): Metric {
  return defineMetric({
    name: `creates.parallel.${width}`,
    unit: "per s",
    isHigherBetter: true,
    samples: { full: 12, quick: 2 },
    prepare: (context) => Sandboxes.open(context),
    async run(sandboxes) {
      const ms = await elapsedMs(() =>
        inParallel(width, batch, async () => sandboxes.destroy(await sandboxes.create())),
      )
      return batch / (ms / 1_000)
    },
  })
}
