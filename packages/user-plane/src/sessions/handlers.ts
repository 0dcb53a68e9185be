import type { Handlers } from "@warren/protocol/contract.ts"
import type { sessionCalls } from "@warren/protocol/user-plane/sessions.ts"
import type { Sessions } from "./sessions.ts"
import type { Snapshots } from "./snapshots.ts"

export function sessionHandlers(sessions: Sessions, snapshots: Snapshots): Handlers<typeof sessionCalls> {
  const done = { ok: true } as const
  return {
    "session.create": (wishes, { signal }) => sessions.create(wishes, signal),
    "session.getOrCreate": (wishes, { signal }) => sessions.getOrCreate(wishes, signal),
    "session.get": async ({ id }) => sessions.get(id),
    "session.list": async (asked) => sessions.list(asked),
    "session.update": (asked) => sessions.update(asked),
    "session.pause": ({ id }) => sessions.pause(id),
    "session.resume": ({ id }) => sessions.resume(id),
    "session.hibernate": ({ id }) => sessions.hibernate(id),
    "session.restore": ({ id }, { signal }) => sessions.restore(id, signal),
    "session.stop": ({ id, graceMs }) => sessions.stop(id, { graceMs }),
    "session.delete": async ({ id }) => {
      await sessions.delete(id)
      return done
    },
    "session.fork": async (asked, { signal }) => ({ sessions: await sessions.fork(asked, signal) }),
    "session.rollback": ({ id, snapshot }, { signal }) => sessions.rollback(id, snapshot, signal),
    "session.keepAwake": async ({ id, ms }) => sessions.keepAwake(id, ms),
    "session.stats": async ({ id }) => sessions.live(id).sandbox.stats(),
    "session.posture": async ({ id }) => {
      const { degraded, ...posture } = await sessions.live(id).sandbox.posture()
      return { ...posture, degraded: [...degraded] }
    },
    "session.denials": async ({ id, after }) => {
      const denials = sessions.live(id).wayOut?.denials(after) ?? []
      return {
        denials: denials.map(({ seq, item: { time, host, port, reason, message } }) => ({
          seq,
          denial: { at: time, host, port, reason, detail: message },
        })),
      }
    },
    "session.follow": ({ after }, { signal }) => sessions.events.read(after, signal),
    "snapshot.create": ({ session, name }) => sessions.snapshot(session, { name }),
    "snapshot.list": async ({ session, ...page }) =>
      snapshots.list({ ...page, session: session === undefined ? undefined : sessions.get(session).id }),
    "snapshot.delete": async ({ id }) => {
      await snapshots.delete(id)
      return done
    },
  }
}
