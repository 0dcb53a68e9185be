import { userInfo } from "node:os"
import { build, version } from "@warren/base/build-info.ts"
import type { Journal } from "@warren/protocol/journal.ts"
import type { UserPlane } from "@warren/protocol/user-plane.ts"
import type { LocalUserPlane } from "@warren/user-plane/user-plane.ts"
import type { AccessLog } from "./control/access-log.ts"
import type { Entry } from "./log-entries.ts"

interface UserPlaneParts {
  readonly journal: Journal<Entry>
  readonly access: AccessLog
  readonly startedAt: Date
  readonly driver: string
  readonly plane: LocalUserPlane
  shutdown(): void
}

/** The user plane of this process: the user's things, and what this process says of itself. */
export function userPlaneOf({ plane, ...parts }: UserPlaneParts): UserPlane {
  let isStopping = false
  const status = (): "ok" | "degraded" | "stopping" =>
    isStopping ? "stopping" : plane.degraded.length > 0 ? "degraded" : "ok"
  return {
    ...plane.handlers,
    "health.check": async () => ({
      status: status(),
      user: userInfo().username,
      version,
      build,
      pid: process.pid,
      startedAt: parts.startedAt.toISOString(),
      driver: parts.driver,
      tools: plane.tools,
      sessions: plane.engine.sessions.counts(),
      found: plane.engine.found,
      degraded: [...plane.degraded],
    }),
    "logs.read": async ({ limit, session }) => {
      const about =
        session === undefined ? parts.journal.tail(limit) : parts.journal.tail(entriesMax).filter(isAbout(session))
      return { entries: fitting(about.slice(-limit).map(({ seq, item }) => ({ seq, entry: item }))) }
    },
    "logs.follow": ({ after }, { signal }) => parts.journal.read(after, signal),
    "access.read": async ({ limit }) => ({ entries: await parts.access.read(limit) }),
    "runner.shutdown": () => {
      isStopping = true
      parts.shutdown()
      return Promise.resolve({ isStopping })
    },
  }
}

/** As many as the journal can have. */
const entriesMax = 10_000

function isAbout(session: string): (entry: { readonly item: Entry }) => boolean {
  return ({ item }) => item.fields["session"] === session
}

/** Half of what one message may hold: the newest lines that fit. */
const answerBytesMax = 512 * 1024

function fitting<T>(entries: readonly T[]): T[] {
  let bytes = 0
  const from = entries.findLastIndex((entry) => (bytes += Buffer.byteLength(JSON.stringify(entry))) > answerBytesMax)
  return entries.slice(from + 1)
}
