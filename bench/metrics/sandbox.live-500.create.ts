import { inCrowd } from "../crowd.ts"
import { elapsedMs } from "../metric.ts"
import { execTrue } from "../sandboxes.ts"

/** A new sandbox up to the end of its first `true` while 500 others run. */
export const metric = inCrowd({
  name: "sandbox.live-500.create",
  async take(sandboxes) {
    const spec = sandboxes.spec()
    const ms = await elapsedMs(async () => execTrue(await sandboxes.create(spec)))
    await sandboxes.destroy(spec)
    return ms
  },
})
