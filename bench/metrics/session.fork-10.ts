import { defineMetric, elapsedMs } from "../metric.ts"
import { Runner } from "../runner.ts"

const forks = 10

/** A running session with 1 GB of files forked into ten. */
export const metric = defineMetric({
  name: "session.fork-10",
  unit: "ms",
  goal: { p50Max: 1_000 },
  samples: { full: 20, quick: 5 },
  async prepare(context) {
    const runner = await Runner.start(context, { WARREN_POOL_MB: "0" })
    const { id } = await runner.create()
    await runner.exec(id, "head -c 1000MB /dev/urandom > ~/data && sync -f ~/data")
    return { runner, id }
  },
  async run({ runner, id }) {
    let made: string[] = []
    const ms = await elapsedMs(async () => {
      const { sessions } = await runner.call("session.fork", { id, count: forks })
      made = sessions.map((session) => session.id)
    })
    for (const fork of made) await runner.delete(fork)
    return ms
  },
})
