import { startControl } from "../control.ts"
import { defineMetric } from "../metric.ts"
import { Runner } from "../runner.ts"
import { inParallel } from "../sandboxes.ts"
import { Terminal, terminalUrl } from "../terminal.ts"

const terminals = 100
const sessions = 4
const atOnce = 8

/** The same with a hundred of them open, in four sessions, typed into one after the other. */
export const metric = defineMetric({
  name: "terminal.hundred",
  unit: "ms",
  goal: { p50Max: 5 },
  samples: { full: 2_000, quick: 200 },
  async prepare(context) {
    const runner = await Runner.start(context, { WARREN_POOL_MB: "0" })
    const { port, token } = await startControl(context, runner)
    const ids: string[] = []
    for (let made = 0; made < sessions; made++) ids.push((await runner.create({ network: { mode: "none" } })).id)
    const open: Terminal[] = []
    context.scope.defer(async () => void (await Promise.all(open.map((terminal) => terminal.close()))))
    await inParallel(atOnce, terminals, async (index) => {
      open.push(await Terminal.open(terminalUrl(port, ids[index % sessions] ?? "", `t${index}`), token))
    })
    return { open, next: 0 }
  },
  run(state) {
    const terminal = state.open[state.next++ % terminals]
    if (!terminal) throw new Error("there is no such terminal")
    return terminal.echo()
  },
})
