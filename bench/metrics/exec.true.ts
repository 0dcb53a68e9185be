import { Baseline } from "../baseline.ts"
import { defineMetric, elapsedMs } from "../metric.ts"
import { execTrue, Sandboxes } from "../sandboxes.ts"

/** `true` in a running sandbox over init's socket, exit and output included; against fork, exec and wait by a small C program on the host. */
export const metric = defineMetric({
  name: "exec.true",
  unit: "ms",
  goal: { ratioMax: 2 },
  samples: { full: 2_000, quick: 300 },
  perTurn: 10,
  async prepare(context) {
    const sandboxes = await Sandboxes.open(context)
    return { sandbox: await sandboxes.create(), baseline: await Baseline.start(context, sandboxes) }
  },
  run: ({ sandbox }) => elapsedMs(() => execTrue(sandbox)),
  baseline: { name: "fork+exec+wait in C", run: ({ baseline }) => baseline.take("true") },
})
