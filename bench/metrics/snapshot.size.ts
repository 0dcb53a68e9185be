import type { Sandbox } from "@warren/drivers/driver.ts"
import { exec } from "@warren/drivers/init/exec.ts"
import { defineMetric, elapsedMs } from "../metric.ts"
import { Sandboxes } from "../sandboxes.ts"

/** A snapshot of a running sandbox that has written 1 GB, against one that has written 10 MB. */
export const metric = defineMetric({
  name: "snapshot.size",
  unit: "ms",
  goal: { ratioMax: 1.5 },
  samples: { full: 100, quick: 10 },
  async prepare(context) {
    const sandboxes = await Sandboxes.open(context)
    const large = await sandboxes.create()
    const small = await sandboxes.create()
    await write(large, 1_000)
    await write(small, 10)
    return { sandboxes, large, small }
  },
  run: ({ sandboxes, large }) => sandboxes.snapshot(large, elapsedMs),
  baseline: { name: "at 10 MB", run: ({ sandboxes, small }) => sandboxes.snapshot(small, elapsedMs) },
})

async function write(sandbox: Sandbox, megabytes: number): Promise<void> {
  const command = `head -c ${megabytes}MB /dev/urandom > /workspace/data && sync -f /workspace/data`
  const { code } = await exec(sandbox, { argv: ["sh", "-c", command] })
  if (code !== 0) throw new Error(`could not write ${megabytes} MB`)
}
