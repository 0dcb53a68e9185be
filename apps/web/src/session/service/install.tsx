import type { Fault } from "@warren/base/fault.ts"
import type { SessionInfo } from "@warren/sdk/session.ts"
import { useState, type ReactElement } from "react"
import { useAsk } from "../../data/query.ts"
import { putSession } from "../../data/sessions.ts"
import { Button } from "../../parts/button.tsx"
import { EmptyState } from "../../parts/empty-state.tsx"
import { TerminalView } from "../terminal/terminal-view.tsx"
import { Lacking } from "./lacking.tsx"
import "../../style/terminal.css"

interface InstallProps {
  readonly session: SessionInfo
  /** That it is not there, as the runner said it. */
  readonly fault: Fault
  retry(): void
}

const name = "vscode"

/** VS Code is not in the image: it can be fetched into the session, and what keeps it from that is said. */
export function Install({ session, fault, retry }: InstallProps): ReactElement {
  const [terminal, setTerminal] = useState<string>()
  const [failed, setFailed] = useState(false)
  const install = useAsk("POST /v1/sessions/{session}/services/{name}/install", {
    isQuiet: true,
    done: (out) => {
      setFailed(false)
      setTerminal(out.terminal)
    },
  })
  const begin = (): void => install.mutate({ session: session.id, name })
  if (install.error) return <Hindered fault={install.error} again={begin} session={session} />
  if (terminal === undefined) {
    const action = (
      <Button icon="download" isBusy={install.isPending} kind="main" onClick={begin}>
        Install it here
      </Button>
    )
    return <Lacking action={action} fault={fault} retry={retry} what="VS Code" />
  }
  return (
    <>
      <div className="service-bar">
        <span className="soft spread tiny" role="status">
          {failed ? "VS Code could not be installed: this is why" : "Installing VS Code: about 450 MB, a minute or two"}
        </span>
        {failed && (
          <Button icon="refresh" isBusy={install.isPending} onClick={begin} size="small">
            Install again
          </Button>
        )}
      </div>
      <TerminalView
        ended={(exitCode) => (exitCode === 0 ? retry() : setFailed(true))}
        key={String(install.submittedAt)}
        name={terminal}
        session={session.id}
      />
    </>
  )
}

interface HinderedProps {
  readonly session: SessionInfo
  readonly fault: Fault
  again(): void
}

/** It cannot begin. Where one host is missing, that is one click. */
function Hindered({ session: { id, network }, fault, again }: HinderedProps): ReactElement {
  const allow = useAsk("PATCH /v1/sessions/{id}", {
    done: (changed) => {
      putSession(id, changed)
      again()
    },
  })
  const host = /^host:(.+)$/.exec(fault.subject ?? "")?.[1]
  const isProxy = network.mode === "proxy"
  const open = (): void => {
    if (isProxy && host) allow.mutate({ id, network: { ...network, allow: [...network.allow, host] } })
  }
  return (
    <EmptyState
      action={
        host && isProxy ? (
          <Button isBusy={allow.isPending} kind="main" onClick={open}>
            Allow {host} and install
          </Button>
        ) : (
          <Button icon="refresh" onClick={again}>
            Try again
          </Button>
        )
      }
      title="VS Code cannot be installed here"
    >
      {fault.message}
      {fault.hint && ` – ${fault.hint}`}.
    </EmptyState>
  )
}
