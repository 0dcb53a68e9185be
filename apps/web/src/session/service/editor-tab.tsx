import type { SessionInfo } from "@warren/sdk/session.ts"
import type { ReactElement } from "react"
import { Button } from "../../parts/button.tsx"
import { EmptyState, Failure, Waiting } from "../../parts/empty-state.tsx"
import { toast } from "../../parts/toast.tsx"
import { Asleep, isAsleep } from "../asleep.tsx"
import { MoveLink } from "../preview/move-link.tsx"
import type { TabProps } from "../tabs.ts"
import { canFrame, entryTo, type Entry } from "./entry.ts"
import { Install } from "./install.tsx"
import { useService } from "./use-service.ts"
import "../../style/service.css"

/** VS Code, inside. */
export default function EditorTab({ session }: TabProps): ReactElement {
  if (isAsleep(session)) return <Asleep session={session} what="Its editor and files" />
  return <Editor info={session} />
}

function Editor({ info }: { readonly info: SessionInfo }): ReactElement {
  const session = info.id
  const { data, error, refetch } = useService(session, "vscode")
  if (error?.code === "unsupported") return <Install fault={error} retry={() => void refetch()} session={info} />
  if (error) return <Failure fault={error} retry={() => void refetch()} />
  if (!data) return <Waiting>Starting the editor…</Waiting>
  const { entry } = data
  // Opened in the click itself: a window that comes later is taken for an advertisement.
  const openOut = (): void => {
    const opened = window.open("about:blank", "_blank")
    if (opened) opened.opener = null
    entryTo(session).then((fresh) => opened?.location.replace(addressOf(fresh)), toast.fault)
  }
  return (
    <>
      <div className="service-bar">
        <span className="soft spread tiny">VS Code, running inside the sandbox</span>
        <Button icon="expand" kind="quiet" onClick={openOut} size="small">
          Open in a tab
        </Button>
      </div>
      {canFrame(entry) ? (
        <iframe
          allow="fullscreen; clipboard-read; clipboard-write"
          className="service-frame"
          sandbox="allow-scripts allow-same-origin allow-forms allow-modals allow-popups allow-downloads"
          src={addressOf(entry)}
          title="VS Code"
        />
      ) : (
        <EmptyState
          action={
            <Button icon="expand" kind="main" onClick={openOut}>
              Open the editor in a tab
            </Button>
          }
          title="The editor is ready"
        >
          It lives on a name of its own{entry.domain && ", below "}
          {entry.domain && <code>{entry.domain}</code>}. With Warren open there too,{" "}
          <MoveLink domain={entry.domain}>it is shown right here</MoveLink>.
        </EmptyState>
      )}
    </>
  )
}

function addressOf({ session, token }: Entry): string {
  return `/s/${session}/vscode/?token=${encodeURIComponent(token)}`
}
