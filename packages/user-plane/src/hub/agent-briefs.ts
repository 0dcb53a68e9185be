import { Fault } from "@warren/base/fault.ts"
import type { Handlers } from "@warren/protocol/contract.ts"
import type { sessionCalls } from "@warren/protocol/user-plane/sessions.ts"
import type { SessionData } from "../sessions/session-record.ts"
import type { Hub } from "./hub.ts"
import type { SessionHub } from "./session-hub.ts"

type SessionHandlers = Handlers<typeof sessionCalls>

/** What changes in a list of sessions when it happens to one's agent. */
const telling: ReadonlySet<string> = new Set(["agent.status", "question", "question.closed"])

/** What sessions answer, with how each one's agent is: whoever shows a list needs no question per session. */
export function withAgents(handlers: SessionHandlers, hub: Hub): SessionHandlers {
  const told = (session: SessionData): SessionData => {
    const agent = hub.brief(session.id)
    return agent ? { ...session, agent } : session
  }
  const each = <I, C>(ask: (input: I, context: C) => Promise<SessionData>) => {
    return async (input: I, context: C): Promise<SessionData> => told(await ask(input, context))
  }
  return {
    ...handlers,
    "session.get": each(handlers["session.get"]),
    "session.update": each(handlers["session.update"]),
    "session.pause": each(handlers["session.pause"]),
    "session.resume": each(handlers["session.resume"]),
    "session.hibernate": each(handlers["session.hibernate"]),
    "session.restore": each(handlers["session.restore"]),
    "session.rollback": each(handlers["session.rollback"]),
    "session.stop": each(handlers["session.stop"]),
    "session.list": async (input, context) => {
      const page = await handlers["session.list"](input, context)
      return { ...page, items: page.items.map(told) }
    },
    async *"session.follow"(input, context) {
      for await (const { seq, item } of handlers["session.follow"](input, context))
        yield { seq, item: item.session ? { ...item, session: told(item.session) } : item }
    },
  }
}

/** Says each time that something changed which a list of sessions shows. Ends with the hub. */
export async function announce(hub: SessionHub, changed: () => void): Promise<void> {
  for (let after = hub.feed.last; !hub.over.aborted;) {
    try {
      for await (const { seq, item } of hub.feed.read(after, hub.over)) {
        after = seq
        if (telling.has(item.type)) changed()
      }
    } catch (failure) {
      // It fell behind: what it missed is over, and how things are now is what counts.
      if (Fault.from(failure).code !== "resync") return
      after = hub.feed.last
      changed()
    }
  }
}
