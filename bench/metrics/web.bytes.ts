import { FirstPage } from "../first-page.ts"
import { defineMetric } from "../metric.ts"

/** Everything that is loaded until the first page is there, as it goes over the wire with gzip. */
export const metric = defineMetric({
  name: "web.bytes",
  unit: "KB",
  goal: { p50Max: 300 },
  samples: { full: 5, quick: 2 },
  prepare: (context) => FirstPage.start(context),
  run: async (page) => (await page.open()).bytes / 1_024,
})
