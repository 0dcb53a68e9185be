import type { Handlers } from "@warren/protocol/contract.ts"
import type { agentCalls } from "@warren/protocol/user-plane/agents.ts"
import { Fault } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import { promptCharsMax } from "@warren/protocol/hub/words.ts"
import type { Hub } from "./hub.ts"
import type { Attachments } from "./provision/attachments.ts"
import type { SessionHub } from "./session-hub.ts"

/** What a user plane answers about agents. `idOf`: a session's id, by its id or its name. */
export function agentHandlers(
  hub: Hub,
  files: Attachments,
  idOf: (which: string) => string,
): Handlers<typeof agentCalls> {
  const done = { ok: true } as const
  const of = (which: string): SessionHub => hub.of(idOf(which))
  return {
    "agent.start": async ({ session, spec, ...wishes }, { signal }) =>
      (await hub.start(idOf(session), spec, wishes, signal)).shown(),
    "agent.get": async ({ session }) => of(session).shown(),
    "agent.stop": async ({ session }) => {
      await of(session).stop()
      return done
    },
    "agent.prompt": async ({ session, attachments: asked, model, messageId = newId("msg"), ...said }, { signal }) => {
      const to = of(session)
      const wished = model === undefined ? {} : { model }
      if (asked === undefined || asked.length === 0) return to.prompt({ ...said, messageId, wishes: wished })
      const { attachments, heard } = await files.prepare(idOf(session), messageId, asked, signal)
      const text = [said.text, ...heard].join("\n\n")
      if (text.length > promptCharsMax) throw new Fault("limit", "with what was said in it, the prompt is too long")
      return to.prompt({ ...said, text, messageId, wishes: { ...wished, attachments } })
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
