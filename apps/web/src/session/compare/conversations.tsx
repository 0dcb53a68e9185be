import type { SessionInfo } from "@warren/sdk/session.ts"
import type { ReactElement } from "react"
import { Link } from "wouter"
import { EmptyState, Failure, Waiting } from "../../parts/empty-state.tsx"
import { MessageList } from "../chat/message-list.tsx"
import { useChat } from "../chat/use-chat.ts"

interface ConversationsProps {
  readonly session: SessionInfo
  readonly other: SessionInfo
}

/** What was said in each, side by side, live. */
export function Conversations({ session, other }: ConversationsProps): ReactElement {
  return (
    <div className="conversations">
      {[session, other].map((one) => (
        <section aria-label={`What was said in ${one.name}`} className="conversation" key={one.id}>
          <h3>
            <Link href={`/s/${one.name}`}>{one.name}</Link>
          </h3>
          {one.agent ? (
            <Conversation session={one.id} />
          ) : (
            <EmptyState title="No agent is there">Nothing was said in {one.name}.</EmptyState>
          )}
        </section>
      ))}
    </div>
  )
}

function Conversation({ session }: { readonly session: string }): ReactElement {
  const { state, fault, earlier, again } = useChat(session)
  if (fault) return <Failure fault={fault} retry={again} />
  if (!state) return <Waiting>Reading the conversation…</Waiting>
  if (state.messages.length === 0) return <EmptyState title="Nothing was said yet" />
  return (
    <MessageList earlier={earlier} state={state}>
      {null}
    </MessageList>
  )
}
