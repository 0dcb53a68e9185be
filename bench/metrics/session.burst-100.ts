import { defineMetric } from "../metric.ts"
import { Runner } from "../runner.ts"

const burst = 100

/** A hundred sessions asked for at once: how long until the slowest but one has run its first command. All of them succeed. */
export const metric = defineMetric({
  name: "session.burst-100",
  unit: "ms",
  goal: { p50Max: 300 },
  samples: { full: 10, quick: 3 },
  prepare: (context) => Runner.start(context, { WARREN_POOL_LEAST: "120" }),
  async run(runner) {
    await full(runner)
    const times: number[] = []
    const ids: string[] = []
    const started = performance.now()
    await Promise.all(
      Array.from({ length: burst }, async () => {
        const { id, acquireSource } = await runner.create()
        ids.push(id)
        if (acquireSource !== "pool") throw new Error("the pool was empty")
        await runner.execTrue(id)
        times.push(performance.now() - started)
      }),
    )
    for (const id of ids) await runner.delete(id)
    return times.toSorted((a, b) => a - b)[Math.ceil(burst * 0.99) - 1] ?? Number.NaN
  },
})

async function full(runner: Runner): Promise<void> {
  for (;;) {
    const { pools } = await runner.call("pool.list", {})
    if (pools.some(({ ready }) => ready >= burst)) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
