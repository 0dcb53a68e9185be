import { defineMetric, elapsedMs } from "../metric.ts"
import { Runner } from "../runner.ts"

/** A session from the pool up to the end of its first `true`, over the runner's socket; against `true` alone in a session that is there. */
export const metric = defineMetric({
  name: "session.warm",
  unit: "ms",
  goal: { ratioMax: 2 },
  samples: { full: 200, quick: 30 },
  async prepare(context) {
    const runner = await Runner.start(context, { WARREN_POOL_LEAST: "32" })
    const { id } = await runner.create()
    return { runner, id }
  },
  async run({ runner }) {
    let made = { id: "", acquireSource: "" }
    const ms = await elapsedMs(async () => {
      made = await runner.create()
      await runner.execTrue(made.id)
    })
    if (made.acquireSource !== "pool") throw new Error("the pool was empty")
    await runner.delete(made.id)
    await runner.poolFull()
    return ms
  },
  baseline: { name: "the command alone", run: ({ runner, id }) => elapsedMs(() => runner.execTrue(id)) },
})
