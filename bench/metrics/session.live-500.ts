import { defineMetric, elapsedMs } from "../metric.ts"
import { Runner } from "../runner.ts"

const crowd = 500
const samples = { full: 100, quick: 20 }

async function take(runner: Runner): Promise<number> {
  let id = ""
  const ms = await elapsedMs(async () => {
    ;({ id } = await runner.create())
    await runner.execTrue(id)
  })
  await runner.delete(id)
  return ms
}

/** A new session up to the end of its first `true` while 500 others live, against the same with one. None wait in the pool. */
export const metric = defineMetric({
  name: "session.live-500",
  unit: "ms",
  goal: { ratioMax: 1.3 },
  samples,
  async prepare(context) {
    const runner = await Runner.start(context, { WARREN_POOL_MB: "0" })
    await runner.create()
    for (let i = 0; i < 20; i++) await take(runner)
    const alone: number[] = []
    for (let i = 0; i < (context.isQuick ? samples.quick : samples.full); i++) alone.push(await take(runner))
    await runner.createMany(crowd - 1)
    let next = 0
    return { runner, alone: () => alone[next++ % alone.length] ?? Number.NaN }
  },
  run: ({ runner }) => take(runner),
  baseline: { name: "with one session", run: ({ alone }) => alone() },
})
