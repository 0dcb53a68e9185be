import type { Handlers } from "@warren/protocol/contract.ts"
import type { agentCalls } from "@warren/protocol/user-plane/agents.ts"
import type { Hub } from "./hub.ts"
import type { SessionHub } from "./session-hub.ts"

/** What a user plane answers about agents. `idOf`: a session's id, by its id or its name. */
export function agentHandlers(hub: Hub, idOf: (which: string) => string): Handlers<typeof agentCalls> {
  const done = { ok: true } as const
  const of = (which: string): SessionHub => hub.of(idOf(which))
  return {
    "agent.start": async ({ session, spec }, { signal }) => (await hub.start(idOf(session), spec, signal)).shown(),
    "agent.get": async ({ session }) => of(session).shown(),
    "agent.stop": async ({ session }) => {
      await of(session).stop()
      return done
    },
    "agent.prompt": async ({ session, text, channel, mode, messageId, model, attachments }) => {
      const wishes = {
        ...(model === undefined ? {} : { model }),
        ...(attachments === undefined ? {} : { attachments }),
      }
      return of(session).prompt({ text, channel, mode, messageId, wishes })
    },
    "agent.answer": async ({ session, questionId, answer }) => {
      of(session).answer(questionId, answer)
      return done
    },
    "agent.abort": async ({ session, queued }) => ({ aborted: of(session).abort(queued) }),
    "agent.revert": async ({ session, messageId, channel }) => ({ messageIds: of(session).revert(channel, messageId) }),
    "agent.renew": async ({ session, channel }) => ({ chatId: of(session).renew(channel) }),
    "session.feed": ({ id, after }, { signal }) => of(id).feed.read(after, signal),
  }
}
