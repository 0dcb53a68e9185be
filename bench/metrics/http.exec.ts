import { openExec } from "../control.ts"
import { defineMetric, elapsedMs } from "../metric.ts"
import { execTrue, Sandboxes } from "../sandboxes.ts"

/** `true` in a session through HTTP, control plane and runner, with its result; against the same over init's socket. */
export const metric = defineMetric({
  name: "http.exec",
  unit: "ms",
  goal: { ratioMax: 3 },
  samples: { full: 1_000, quick: 150 },
  perTurn: 10,
  async prepare(context) {
    const sandboxes = await Sandboxes.open(context)
    return { connection: await openExec(context), sandbox: await sandboxes.create() }
  },
  run: ({ connection }) => elapsedMs(() => connection.ask()),
  baseline: { name: "over init's socket", run: ({ sandbox }) => elapsedMs(() => execTrue(sandbox)) },
})
