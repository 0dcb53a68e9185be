import { defineMetric, type Metric } from "./metric.ts"
import { Sandboxes } from "./sandboxes.ts"
import type { Sandbox } from "@warren/drivers/driver.ts"

export const crowdSize = 500
const samples = { full: 200, quick: 20 }
/** Taken first and thrown away: compilers and caches settle meanwhile. */
const warmups = 30

interface Crowd {
  readonly name: string
  /** One sample, in milliseconds. `one` is a sandbox that has been there from the start. */
  take(sandboxes: Sandboxes, one: Sandbox): Promise<number>
}

/**
 * Something with 500 sandboxes running, against the same with one. The one comes first: the harness takes turns, but a crowd
 * cannot come and go between two samples, so the baseline gives out what it measured before the others came.
 */
export function inCrowd({ name, take }: Crowd): Metric {
  return defineMetric({
    name,
    unit: "ms",
    goal: { ratioMax: 1.3 },
    samples,
    async prepare(context) {
      const sandboxes = await Sandboxes.open(context)
      const one = await sandboxes.create()
      const count = context.isQuick ? samples.quick : samples.full
      for (let i = 0; i < warmups; i++) await take(sandboxes, one)
      const alone: number[] = []
      for (let i = 0; i < count; i++) {
        context.signal.throwIfAborted()
        alone.push(await take(sandboxes, one))
      }
      await sandboxes.createMany(crowdSize - 1)
      let next = 0
      return { sandboxes, one, alone: () => alone[next++ % alone.length] ?? Number.NaN }
    },
    run: ({ sandboxes, one }) => take(sandboxes, one),
    baseline: { name: "with one sandbox running", run: ({ alone }) => alone() },
  })
}
