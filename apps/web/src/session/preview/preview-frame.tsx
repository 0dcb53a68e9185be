import type { Output } from "@warren/sdk/routes.ts"
import { useEffect, useState, type ReactElement } from "react"
import { Button } from "../../parts/button.tsx"
import { EmptyState, Failure, Waiting } from "../../parts/empty-state.tsx"
import { toast } from "../../parts/toast.tsx"
import { canFrame, entryTo, type Entry } from "../service/entry.ts"
import { MoveLink } from "./move-link.tsx"

type Tunnel = Output<"GET /v1/tunnels">["items"][number]

interface PreviewFrameProps {
  readonly session: string
  readonly tunnel: Tunnel
}

/**
 * One preview, on a host name of its own: it sees nothing of this page, and this page lets it do nothing. Each look begins with a token
 * that opens this one session, for minutes.
 */
export function PreviewFrame({ session, tunnel }: PreviewFrameProps): ReactElement {
  const [turn, setTurn] = useState(0)
  const [entry, setEntry] = useState<Entry>()
  const [fault, setFault] = useState<unknown>()
  useEffect(() => {
    const leave = new AbortController()
    setFault(undefined)
    setEntry(undefined)
    entryTo(session, leave.signal, tunnel.port).then(
      setEntry,
      (thrown: unknown) => leave.signal.aborted || setFault(thrown),
    )
    return () => leave.abort()
  }, [session, tunnel, turn])
  // Opened in the click itself: a window that comes later is taken for an advertisement.
  const openOut = (): void => {
    const opened = window.open("about:blank", "_blank")
    if (opened) opened.opener = null
    entryTo(session, undefined, tunnel.port).then((given) => {
      opened?.location.replace(addressOf(tunnel, given))
    }, toast.fault)
  }
  if (fault) return <Failure fault={fault} retry={() => setTurn(turn + 1)} />
  if (!entry) return <Waiting>Opening port {tunnel.port}…</Waiting>
  return (
    <>
      <div className="preview-tools">
        <Button aria-label="Reload" icon="refresh" kind="quiet" onClick={() => setTurn(turn + 1)} size="small" />
        <span className="cut spread soft tiny mono">
          {tunnel.label}.{entry.domain}
        </span>
        <Button icon="expand" kind="quiet" onClick={openOut} size="small">
          Open in a tab
        </Button>
      </div>
      {canFrame(entry) ? (
        <iframe
          allow="fullscreen; clipboard-write"
          className="preview"
          sandbox="allow-scripts allow-same-origin allow-forms allow-modals allow-popups allow-downloads"
          src={addressOf(tunnel, entry)}
          title={`Preview of port ${tunnel.port}`}
        />
      ) : (
        <EmptyState
          action={
            <Button icon="expand" kind="main" onClick={openOut}>
              Open port {tunnel.port} in a tab
            </Button>
          }
          title={`Port ${tunnel.port} is ready to be seen`}
        >
          Previews live on names of their own, below <code>{entry.domain}</code>. With Warren open there too,{" "}
          <MoveLink domain={entry.domain}>they are shown right here</MoveLink>.
        </EmptyState>
      )}
    </>
  )
}

function addressOf({ name }: Tunnel, { session, token }: Entry): string {
  return `/s/${session}/t/${name}/?token=${encodeURIComponent(token)}`
}
