import { useState, type FormEvent, type ReactElement } from "react"
import { useAsk, useCall } from "../../data/query.ts"
import { Button } from "../../parts/button.tsx"
import { EmptyState, Failure, Waiting } from "../../parts/empty-state.tsx"
import { Asleep, isAsleep } from "../asleep.tsx"
import type { TabProps } from "../tabs.ts"
import { PreviewFrame } from "./preview-frame.tsx"
import "../../style/preview.css"

const listEveryMs = 3_000

/** What listens inside, as a browser sees it. */
export default function PreviewTab({ session }: TabProps): ReactElement {
  const tunnels = useCall("GET /v1/tunnels", { session: session.id }, { everyMs: listEveryMs })
  const [chosen, choose] = useState<number>()
  const create = useAsk("POST /v1/sessions/{session}/tunnels", {
    renews: ["GET /v1/tunnels"],
    done: ({ tunnel }) => choose(tunnel.port),
  })
  const remove = useAsk("DELETE /v1/sessions/{session}/tunnels/{name}", { renews: ["GET /v1/tunnels"] })
  if (isAsleep(session)) return <Asleep session={session} what="Its previews" />
  if (tunnels.error) return <Failure fault={tunnels.error} retry={() => void tunnels.refetch()} />
  if (!tunnels.data) return <Waiting>Looking for previews…</Waiting>
  const { items } = tunnels.data
  const shown = items.find(({ port }) => port === chosen) ?? items[0]
  const open = (port: number): void => {
    const known = items.find((one) => one.port === port)
    if (known) choose(port)
    else create.mutate({ session: session.id, name: `p${port}`, port })
  }
  return (
    <>
      <div className="preview-bar">
        <div aria-label="Previews" className="tab-list" role="tablist">
          {items.map(({ id, name, port }) => (
            <button aria-selected={port === shown?.port} key={id} onClick={() => choose(port)} role="tab" type="button">
              {name === `p${port}` ? `:${port}` : `${name} :${port}`}
            </button>
          ))}
        </div>
        <PortForm isBusy={create.isPending} open={open} />
        {shown && (
          <Button
            aria-label={`Close the preview of port ${shown.port}`}
            icon="close"
            kind="quiet"
            onClick={() => remove.mutate({ session: session.id, name: shown.name })}
            size="small"
          />
        )}
      </div>
      {shown ? (
        <PreviewFrame key={shown.id} session={session.id} tunnel={shown} />
      ) : (
        <EmptyState title="Nothing is shown yet">
          Start something that listens on a port, such as <code>python3 -m http.server 8000</code>, and enter the port
          above.
        </EmptyState>
      )}
    </>
  )
}

function PortForm({ open, isBusy }: { readonly isBusy: boolean; open(port: number): void }): ReactElement {
  const [port, setPort] = useState("")
  const send = (event: FormEvent): void => {
    event.preventDefault()
    open(Number(port))
    setPort("")
  }
  return (
    <form className="row" onSubmit={send}>
      <input
        aria-label="Port"
        className="input port"
        inputMode="numeric"
        max={65_535}
        min={1}
        onChange={({ target }) => setPort(target.value)}
        placeholder="Port"
        required
        type="number"
        value={port}
      />
      <Button isBusy={isBusy} size="small" type="submit">
        Show
      </Button>
    </form>
  )
}
