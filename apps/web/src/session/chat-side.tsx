import type { SessionInfo } from "@warren/sdk/session.ts"
import type { ReactElement } from "react"
import { EmptyState } from "../parts/empty-state.tsx"
import { Chat } from "./chat/chat.tsx"
import type { PaneState, PaneView } from "./pane-state.ts"
import { SessionHead } from "./session-head.tsx"

interface ChatSideProps {
  readonly session: SessionInfo
  readonly pane: PaneState
  readonly view: PaneView
}

/** What the session is, and what is said in it. */
export function ChatSide({ session, pane, view }: ChatSideProps): ReactElement {
  return (
    <main className="main chat-side">
      <SessionHead pane={pane} session={session} view={view} />
      {session.agent ? (
        <Chat session={session} />
      ) : (
        <div className="no-agent">
          <EmptyState title="No agent is here">
            The terminal and the files are one swipe away; an agent can be started above.
          </EmptyState>
        </div>
      )}
    </main>
  )
}
