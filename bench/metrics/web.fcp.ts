import { FirstPage } from "../first-page.ts"
import { defineMetric } from "../metric.ts"

/** First contentful paint of the page in a browser that has nothing of it yet, on loopback. */
export const metric = defineMetric({
  name: "web.fcp",
  unit: "ms",
  goal: { p50Max: 1_000 },
  samples: { full: 30, quick: 5 },
  prepare: (context) => FirstPage.start(context),
  run: async (page) => (await page.open()).paintedMs,
})
