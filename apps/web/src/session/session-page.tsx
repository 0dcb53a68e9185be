import { useEffect, type ReactElement } from "react"
import { sessions, useSession } from "../data/sessions.ts"
import { useStore } from "../data/store.ts"
import { NotFound } from "../pages/not-found.tsx"
import { Waiting } from "../parts/empty-state.tsx"
import { lookOf } from "../parts/look.ts"
import { ChatSide } from "./chat-side.tsx"
import { Pane } from "./pane.tsx"
import { usePane } from "./pane-state.ts"
import "../style/session.css"

interface SessionPageProps {
  /** Its id or its name. */
  readonly which: string
  readonly tab: string | undefined
}

/** The conversation in the middle, one of the views beside it. */
export default function SessionPage({ which, tab }: SessionPageProps): ReactElement {
  const session = useSession(which)
  const isKnown = useStore(sessions) !== undefined
  const pane = usePane(session?.id ?? "", tab)
  const asks = session !== undefined && lookOf(session) === "asks"
  useEffect(() => {
    document.title = `${asks ? "◐ " : ""}${session?.name ?? which} · Warren`
  }, [asks, session?.name, which])
  if (!session) {
    if (isKnown) return <NotFound title={`There is no session ${which}`} />
    return (
      <main className="main">
        <Waiting>Looking for {which}…</Waiting>
      </main>
    )
  }
  // Without an agent there is nothing to say: what is inside gets the room.
  const view = session.agent ? pane.view : "full"
  return (
    <div
      className="session"
      data-agent={session.agent ? "some" : "none"}
      data-view={view}
      style={{ "--pane": `${pane.percent}%` } as object}
    >
      <ChatSide pane={pane} session={session} view={view} />
      {view !== "hidden" && <Pane pane={pane} session={session} view={view} />}
    </div>
  )
}
