import { z } from "zod"
import { contract } from "../contract.ts"
import { UserName } from "../control/account.ts"

export const RunnerReport = z.object({
  user: UserName,
  /** `waiting`: it died and is started again in a moment. `failed`: it died too often, and is left alone until it is asked for. */
  state: z.enum(["stopped", "starting", "running", "waiting", "failed"]),
  pid: z.int().min(1).optional(),
  /** How often in a row it died soon after its start. */
  deaths: z.int().min(0),
  /** `exit code 1`, or the signal that ended it. */
  lastEnd: z.string().optional(),
})
export type RunnerReport = z.output<typeof RunnerReport>

const about = { in: z.object({ user: UserName }), out: RunnerReport }

/** Longer than a runner may take to become ready, or to end. */
const patienceMs = 90_000

/** All that the one process with root's rights can be asked for. A user's name is all it is told: the rest is in root's records. */
export const launcher = contract({
  "runner.start": {
    since: 1,
    doc: "Start the runner of a known user, and answer when it can be connected to; the same when it runs already.",
    timeoutMs: patienceMs,
    ...about,
  },
  "runner.stop": {
    since: 1,
    doc: "Stop the runner of a known user; their sandboxes go on.",
    timeoutMs: patienceMs,
    ...about,
  },
  "runner.status": { since: 1, doc: "How the runner of a known user is.", ...about },
})
