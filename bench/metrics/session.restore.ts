import { defineMetric, elapsedMs } from "../metric.ts"
import { Runner } from "../runner.ts"

/** Waking a hibernated session with 200 MB of files up to the end of its first command, against making a new one. */
export const metric = defineMetric({
  name: "session.restore",
  unit: "ms",
  goal: { ratioMax: 2 },
  samples: { full: 50, quick: 10 },
  async prepare(context) {
    const runner = await Runner.start(context, { WARREN_POOL_MB: "0" })
    const { id } = await runner.create()
    await runner.exec(id, "head -c 200MB /dev/urandom > ~/data && sync -f ~/data")
    return { runner, id }
  },
  async run({ runner, id }) {
    await runner.call("session.hibernate", { id })
    return elapsedMs(() => runner.execTrue(id))
  },
  baseline: {
    name: "a cold create and its first command",
    async run({ runner }) {
      let made = ""
      const ms = await elapsedMs(async () => {
        made = (await runner.create()).id
        await runner.execTrue(made)
      })
      await runner.delete(made)
      return ms
    },
  },
})
