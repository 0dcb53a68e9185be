import type { SessionInfo } from "@warren/sdk/session.ts"
import { useState, type ReactElement } from "react"
import { useAsk } from "../data/query.ts"
import { Button } from "../parts/button.tsx"
import { FormDialog } from "../parts/form-dialog.tsx"
import { AgentFields } from "./agent-fields.tsx"
import { agentKinds, specOf, type AgentWish } from "./agent-wishes.ts"

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
  const [wish, setWish] = useState<AgentWish>({ agent: "scripted", command: "", models: "" })
  const start = useAsk("POST /v1/sessions/{session}/agent", { isQuiet: true, done: close })
  const spec = specOf(wish, session.keys)
  const send = (): void => {
    if (spec) start.mutate({ session: session.id, spec })
  }
  return (
    <FormDialog act="Start" close={close} isBusy={start.isPending} send={send} title="Start an agent">
      <AgentFields
        keys={session.keys}
        kinds={agentKinds.slice(1)}
        set={(changes) => setWish({ ...wish, ...changes })}
        wish={wish}
        wrong={start.error ? `${start.error.message}${start.error.hint ? ` – ${start.error.hint}` : ""}` : undefined}
      />
    </FormDialog>
  )
}
