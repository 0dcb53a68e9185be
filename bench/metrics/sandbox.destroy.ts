import { Baseline } from "../baseline.ts"
import { defineMetric, elapsedMs } from "../metric.ts"
import { Sandboxes } from "../sandboxes.ts"

/**
 * Taking a running sandbox away, with all it wrote, against `crun delete -f` of a running container, which leaves the root's mounts
 * and layers to whoever made them: those are not in its time.
 */
export const metric = defineMetric({
  name: "sandbox.destroy",
  unit: "ms",
  goal: { ratioMax: 0.5 },
  samples: { full: 200, quick: 20 },
  async prepare(context) {
    const sandboxes = await Sandboxes.open(context)
    return { sandboxes, baseline: await Baseline.start(context, sandboxes) }
  },
  async run({ sandboxes }) {
    const sandbox = await sandboxes.create()
    return elapsedMs(() => sandboxes.destroy(sandbox))
  },
  baseline: { name: "crun delete -f", run: ({ baseline }) => baseline.take("crun delete") },
})
