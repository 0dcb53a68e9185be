import type { Handlers } from "@warren/protocol/contract.ts"
import type { sessionCalls } from "@warren/protocol/user-plane/sessions.ts"
import type { SessionRecord } from "../sessions/session-record.ts"
import type { Sessions } from "../sessions/sessions.ts"
import type { SnapshotRecord } from "../sessions/snapshot-store.ts"
import type { Snapshots } from "../sessions/snapshots.ts"
import type { Heritage, PastTurn } from "./heritage.ts"
import type { Hub } from "./hub.ts"

interface TurnForkParts {
  readonly sessions: Sessions
  readonly snapshots: Snapshots
  readonly heritage: Heritage
  readonly hub: Hub
}

/** Forks, also from a turn: with the agent and what was said up to it. */
export function turnForks(parts: TurnForkParts): Pick<Handlers<typeof sessionCalls>, "session.fork"> {
  const { sessions, snapshots, heritage, hub } = parts
  return {
    "session.fork": async ({ turn: messageId, ...asked }, { signal }) => {
      if (messageId === undefined) return { sessions: await sessions.fork(asked, signal) }
      const record = sessions.record(asked.id)
      const turn = heritage.turn(record.id, messageId)
      const snapshot = filesOf(record, turn, snapshots)
      const made = await sessions.fork(asked, signal, snapshot)
      try {
        for (const { id } of made) heritage.pass(turn, id)
      } catch (failure) {
        for (const { id } of made) await sessions.delete(id)
        throw failure
      }
      for (const { id } of made) hub.adopt(id)
      const areThen = snapshot !== undefined || turn.nextAt === undefined
      return { sessions: made.map(({ id }) => told(sessions, hub, id)), files: areThen ? "then" : "now" }
    },
  }
}

/** As they were when the turn was over and nobody had said anything else yet. */
function filesOf({ id }: SessionRecord, turn: PastTurn, snapshots: Snapshots): SnapshotRecord | undefined {
  const { endedAt, nextAt } = turn
  // Nothing came after it: they are as they were, and what a person did since goes along.
  if (endedAt === undefined || nextAt === undefined) return undefined
  return snapshots.between(id, endedAt, nextAt)
}

function told(sessions: Sessions, hub: Hub, id: string): ReturnType<Sessions["get"]> {
  const agent = hub.brief(id)
  return { ...sessions.get(id), ...(agent && { agent }) }
}
