import { defineMetric } from "../metric.ts"
import { TimeToInteractive } from "../time-to-interactive.ts"

const count = 20
const waves = { full: 3, quick: 1 }

/** From `create` to the answer of `node -v`, by ComputeSDK's adapter for E2B, each a little after the one before. All of them succeed. */
export const metric = defineMetric({
  name: "tti.staggered",
  unit: "ms",
  samples: { full: waves.full * count, quick: waves.quick * count },
  prepare: (context) => TimeToInteractive.start(context, { count, apartMs: 50, waves }),
  run: (one) => one.next(),
})
