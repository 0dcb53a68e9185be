import { startControl } from "../control.ts"
import { defineMetric } from "../metric.ts"
import { Runner } from "../runner.ts"
import { Terminal, terminalUrl } from "../terminal.ts"

/** From a keystroke in a terminal of the page to its echo: control plane, runner, init, a program, and all the way back. */
export const metric = defineMetric({
  name: "terminal.echo",
  unit: "ms",
  goal: { p50Max: 5 },
  samples: { full: 2_000, quick: 200 },
  async prepare(context) {
    const runner = await Runner.start(context, { WARREN_POOL_MB: "0" })
    const { port, token } = await startControl(context, runner)
    const { id } = await runner.create({ network: { mode: "none" } })
    const terminal = await Terminal.open(terminalUrl(port, id, "main"), token)
    context.scope.defer(() => terminal.close())
    return terminal
  },
  run: (terminal) => terminal.echo(),
})
