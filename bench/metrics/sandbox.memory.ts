import { setTimeout as sleep } from "node:timers/promises"
import { defineMetric } from "../metric.ts"
import { availableBytes, memoryOf, sumOf } from "../sandbox-memory.ts"
import { Sandboxes } from "../sandboxes.ts"

/** Long enough for what starting them has freed to be given back. */
const settleMs = 1_000

/**
 * Memory of one idle sandbox among 200: private pages of its init, and what the kernel holds for it and counts in its group. The
 * groups themselves are counted nowhere; they are in the cross-check on stderr, which says how much less the machine has available
 * for each sandbox. That is the whole machine's: what the runner's side of it costs, and whatever else runs, is in it.
 */
export const metric = defineMetric({
  name: "sandbox.memory",
  unit: "MB",
  goal: { p50Max: 0.6 },
  samples: { full: 1, quick: 1 },
  async prepare(context) {
    const sandboxes = await Sandboxes.open(context)
    // What the first ones bring into memory is there for all.
    for (const sandbox of await sandboxes.createMany(8)) await sandboxes.destroy(sandbox)
    return { sandboxes, count: context.isQuick ? 50 : 200 }
  },
  async run({ sandboxes, count }) {
    await sleep(settleMs)
    const before = availableBytes()
    const running = await sandboxes.createMany(count)
    await sleep(settleMs)
    const machine = before - availableBytes()
    const total = sumOf(await Promise.all(running.map(memoryOf)))
    const each = (bytes: number): string => (bytes / count / 1_000_000).toFixed(3)
    const parts = `private ${each(total.own)}, kernel ${each(total.kernel)}, group ${each(total.group)}`
    process.stderr.write(`  ${count} sandboxes, MB each: ${parts}; from MemAvailable ${each(machine)}\n`)
    return (total.own + total.kernel) / count / 1_000_000
  },
})
