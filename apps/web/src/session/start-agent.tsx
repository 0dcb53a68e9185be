import type { SessionInfo } from "@warren/sdk/session.ts"
import { useState, type FormEvent, type ReactElement } from "react"
import { useAsk } from "../data/query.ts"
import { Button } from "../parts/button.tsx"
import { Dialog } from "../parts/dialog.tsx"
import { Field, SelectField } from "../parts/field.tsx"
import { agentKinds, specOf, wantsCommand, type AgentKind } from "./agent-wishes.ts"

/** For a session that has none: give it an agent. */
export function StartAgent({ session }: { readonly session: SessionInfo }): ReactElement {
  const [isOpen, open] = useState(false)
  return (
    <>
      <Button icon="chat" onClick={() => open(true)} size="small">
        Start an agent
      </Button>
      {isOpen && <StartAgentDialog close={() => open(false)} session={session} />}
    </>
  )
}

function StartAgentDialog({ session, close }: { readonly session: SessionInfo; close(): void }): ReactElement {
  const [kind, setKind] = useState<AgentKind>("scripted")
  const [line, setLine] = useState("")
  const start = useAsk("POST /v1/sessions/{session}/agent", { isQuiet: true, done: close })
  const spec = specOf(kind, line)
  const send = (event: FormEvent): void => {
    event.preventDefault()
    if (spec) start.mutate({ session: session.id, spec })
  }
  return (
    <Dialog close={close} title="Start an agent">
      <form className="stack" onSubmit={send}>
        <SelectField
          name="Agent"
          onChange={({ target }) => setKind(target.value as AgentKind)}
          said={agentKinds.find(([one]) => one === kind)?.[2]}
          value={kind}
          wrong={start.error ? `${start.error.message}${start.error.hint ? ` – ${start.error.hint}` : ""}` : undefined}
        >
          {agentKinds.slice(1).map(([one, name]) => (
            <option key={one} value={one}>
              {name}
            </option>
          ))}
        </SelectField>
        {wantsCommand(kind) && (
          <Field
            name="Command"
            onChange={({ target }) => setLine(target.value)}
            placeholder="opencode acp"
            required
            value={line}
          />
        )}
        <div className="ends">
          <Button onClick={close}>Not now</Button>
          <Button isBusy={start.isPending} kind="main" type="submit">
            Start
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
