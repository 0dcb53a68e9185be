import { readFileSync, writeFileSync } from "node:fs"
import { defineMetric } from "../metric.ts"
import { Runner } from "../runner.ts"

interface State {
  readonly runner: Runner
  readonly id: string
  /** Bytes of the larger output; the smaller one has a tenth. */
  readonly bytes: number
}

/** The most memory the runner ever has while 10 GB of output go through it to a reader, against 1 GB. */
export const metric = defineMetric<State>({
  name: "output.memory",
  unit: "MB",
  goal: { ratioMax: 1.25 },
  samples: { full: 1, quick: 1 },
  async prepare(context) {
    const runner = await Runner.start(context, { WARREN_POOL_MB: "0" })
    const { id } = await runner.create({ network: { mode: "none" } })
    const state = { runner, id, bytes: context.isQuick ? 1e9 : 10e9 }
    // What the first bytes bring into memory is there for both.
    await peakMB(state, state.bytes / 20)
    return state
  },
  run: (state) => peakMB(state, state.bytes),
  baseline: { name: "with a tenth of it", run: (state) => peakMB(state, state.bytes / 10) },
})

async function peakMB({ runner, id }: State, bytes: number): Promise<number> {
  // Forgets the peak so far.
  writeFileSync(`/proc/${runner.pid}/clear_refs`, "5")
  await runner.exec(id, `head -c ${bytes} /dev/zero`)
  const status = readFileSync(`/proc/${runner.pid}/status`, "utf8")
  return (Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) * 1024) / 1_000_000
}
