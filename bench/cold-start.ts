import { existsSync } from "node:fs"
import { Baseline, type Way } from "./baseline.ts"
import { defineMetric, elapsedMs, type Goal, type Metric } from "./metric.ts"
import { execTrue, Sandboxes } from "./sandboxes.ts"

interface ColdStart {
  readonly name: string
  readonly goal: Goal
  readonly against: Way
  readonly called: string
  /** What must be installed. */
  readonly program?: string
}

/** From nothing to the end of the first `true` in a new sandbox, through the whole driver; against another way to that. */
export function coldStart({ name, goal, against, called, program }: ColdStart): Metric {
  return defineMetric({
    name,
    unit: "ms",
    goal,
    samples: { full: 200, quick: 20 },
    async prepare(context) {
      if (program !== undefined && !existsSync(program)) context.skip(`${program} is not installed`)
      const sandboxes = await Sandboxes.open(context)
      return { sandboxes, baseline: await Baseline.start(context, sandboxes) }
    },
    async run({ sandboxes }) {
      const spec = sandboxes.spec()
      const ms = await elapsedMs(async () => execTrue(await sandboxes.create(spec)))
      await sandboxes.destroy(spec)
      return ms
    },
    baseline: { name: called, run: ({ baseline }) => baseline.take(against) },
  })
}
