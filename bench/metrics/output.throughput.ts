import type { Sandbox } from "@warren/drivers/driver.ts"
import { Execution } from "@warren/drivers/init/exec.ts"
import { Baseline } from "../baseline.ts"
import { defineMetric, elapsedMs } from "../metric.ts"
import { Sandboxes } from "../sandboxes.ts"

/** As `baseline/main.c` has it. */
const bytes = 128 * 1024 * 1024
const perSecond = (ms: number): number => bytes / 1_000_000 / (ms / 1_000)

/** 128 MiB of `head -c … /dev/zero` from a sandbox into this process, against the same into `cat` through a pipe on the host. */
export const metric = defineMetric({
  name: "output.throughput",
  unit: "MB/s",
  isHigherBetter: true,
  goal: { ratioMin: 0.5 },
  samples: { full: 100, quick: 8 },
  async prepare(context) {
    const sandboxes = await Sandboxes.open(context)
    return { sandbox: await sandboxes.create(), baseline: await Baseline.start(context, sandboxes) }
  },
  run: async ({ sandbox }) => perSecond(await elapsedMs(() => readZeros(sandbox))),
  baseline: { name: "a pipe to cat", run: async ({ baseline }) => perSecond(await baseline.take("pipe to cat")) },
})

async function readZeros(sandbox: Sandbox): Promise<void> {
  await using execution = await Execution.start(sandbox, { argv: ["head", "-c", String(bytes), "/dev/zero"] })
  let read = 0
  for await (const chunk of execution.output()) read += chunk.bytes.length
  if (read !== bytes) throw new Error(`${read} bytes came instead of ${bytes}`)
}
