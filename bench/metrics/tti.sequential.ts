import { defineMetric } from "../metric.ts"
import { TimeToInteractive } from "../time-to-interactive.ts"

const count = 1
const waves = { full: 60, quick: 10 }

/** From `create` to the answer of `node -v`, by ComputeSDK's adapter for E2B, one after the other. All of them succeed. */
export const metric = defineMetric({
  name: "tti.sequential",
  unit: "ms",
  samples: { full: waves.full * count, quick: waves.quick * count },
  prepare: (context) => TimeToInteractive.start(context, { count, apartMs: 0, waves }),
  run: (one) => one.next(),
})
