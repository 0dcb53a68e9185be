import { Shell } from "@warren/drivers/init/shell.ts"
import { defineMetric, elapsedMs } from "../metric.ts"
import { Sandboxes } from "../sandboxes.ts"

/** A command that does nothing, in a shell that lives between commands. */
export const metric = defineMetric({
  name: "shell.run",
  unit: "ms",
  goal: { p50Max: 1.5 },
  samples: { full: 2_000, quick: 300 },
  async prepare(context) {
    const sandboxes = await Sandboxes.open(context)
    return Shell.open(await sandboxes.create())
  },
  run: (shell) => elapsedMs(() => shell.run(":")),
})
