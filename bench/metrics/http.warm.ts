import { startControl } from "../control.ts"
import { HttpClient } from "../http-client.ts"
import { defineMetric, elapsedMs } from "../metric.ts"
import { Runner } from "../runner.ts"

const command = { argv: ["true"] }

/** A session from the pool up to the end of its first `true`, through HTTP and control plane; against `true` alone in a session that is there, the same way. */
export const metric = defineMetric({
  name: "http.warm",
  unit: "ms",
  goal: { ratioMax: 2 },
  samples: { full: 200, quick: 30 },
  async prepare(context) {
    const runner = await Runner.start(context, { WARREN_POOL_LEAST: "32" })
    const client = context.scope.use(new HttpClient(await startControl(context, runner)))
    const { id } = await runner.create()
    await runner.poolFull()
    return { runner, client, id }
  },
  async run({ runner, client }) {
    let made = { id: "", acquireSource: "" }
    const ms = await elapsedMs(async () => {
      made = await client.post<typeof made>("/v1/sessions", {})
      runner.own(made.id)
      await client.post(`/v1/sessions/${made.id}/exec`, command)
    })
    await runner.delete(made.id)
    if (made.acquireSource !== "pool") throw new Error("the pool was empty")
    await runner.poolFull()
    return ms
  },
  baseline: {
    name: "the command alone",
    run: ({ client, id }) => elapsedMs(() => client.post(`/v1/sessions/${id}/exec`, command)),
  },
})
