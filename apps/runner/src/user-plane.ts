import { userInfo } from "node:os"
import { build, version } from "@warren/base/build-info.ts"
import type { Journal } from "@warren/protocol/journal.ts"
import type { UserPlane } from "@warren/protocol/user-plane.ts"
import type { Entry } from "./log-entries.ts"

interface UserPlaneParts {
  readonly journal: Journal<Entry>
  readonly startedAt: Date
  shutdown(): void
}

/** The user plane of this process. */
export function userPlaneOf(parts: UserPlaneParts): UserPlane {
  let isStopping = false
  return {
    "health.check": () =>
      Promise.resolve({
        status: isStopping ? ("stopping" as const) : ("ok" as const),
        user: userInfo().username,
        version,
        build,
        pid: process.pid,
        startedAt: parts.startedAt.toISOString(),
        degraded: [],
      }),
    "logs.read": ({ limit }) =>
      Promise.resolve({ entries: fitting(parts.journal.tail(limit).map(({ seq, item }) => ({ seq, entry: item }))) }),
    "logs.follow": ({ after }, { signal }) => parts.journal.read(after, signal),
    "runner.shutdown": () => {
      isStopping = true
      parts.shutdown()
      return Promise.resolve({ isStopping })
    },
  }
}

/** Half of what one message may hold: the newest lines that fit. */
const answerBytesMax = 512 * 1024

function fitting<T>(entries: readonly T[]): T[] {
  let bytes = 0
  const from = entries.findLastIndex((entry) => (bytes += Buffer.byteLength(JSON.stringify(entry))) > answerBytesMax)
  return entries.slice(from + 1)
}
