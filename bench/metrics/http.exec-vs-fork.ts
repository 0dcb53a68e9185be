import { Baseline } from "../baseline.ts"
import { openExec } from "../control.ts"
import { defineMetric, elapsedMs } from "../metric.ts"
import { Sandboxes } from "../sandboxes.ts"

/** `true` in a session through HTTP, control plane and runner, with its result; against fork, exec and wait by a small C program on the host. */
export const metric = defineMetric({
  name: "http.exec-vs-fork",
  unit: "ms",
  goal: { ratioMax: 4 },
  samples: { full: 1_000, quick: 150 },
  perTurn: 10,
  async prepare(context) {
    const sandboxes = await Sandboxes.open(context)
    return { connection: await openExec(context), baseline: await Baseline.start(context, sandboxes) }
  },
  run: ({ connection }) => elapsedMs(() => connection.ask()),
  baseline: { name: "fork+exec+wait in C", run: ({ baseline }) => baseline.take("true") },
})
