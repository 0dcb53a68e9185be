import { inCrowd } from "../crowd.ts"
import { elapsedMs } from "../metric.ts"
import { execTrue } from "../sandboxes.ts"

/** `true` in a sandbox that is one of 500. */
export const metric = inCrowd({
  name: "sandbox.live-500.exec",
  take: (_, one) => elapsedMs(() => execTrue(one)),
})
