import type { SessionInfo } from "@warren/sdk/session.ts"
import { useState, type ReactElement } from "react"
import { useLocation } from "wouter"
import { useAsk } from "../data/query.ts"
import { putSession } from "../data/sessions.ts"
import { Button } from "../parts/button.tsx"
import { Choices } from "../parts/choices.tsx"
import { Dialog } from "../parts/dialog.tsx"
import { toast } from "../parts/toast.tsx"

const counts = [
  ["1", "Once"],
  ["2", "Twice"],
  ["3", "3 ways"],
  ["5", "5 ways"],
] as const

/** Other ways from here: new sessions with the files this one has now. */
export function ForkDialog({ session, close }: { readonly session: SessionInfo; close(): void }): ReactElement {
  const [count, setCount] = useState("1")
  const [, go] = useLocation()
  const fork = useAsk("POST /v1/sessions/{id}/fork", {
    done: ({ sessions }) => {
      for (const made of sessions) putSession(made.id, made)
      close()
      const [first] = sessions
      if (sessions.length > 1) toast.say(`${sessions.length} sessions, each with these files`)
      if (first) go(`/s/${first.name}`)
    },
  })
  return (
    <Dialog close={close} title={`Fork ${session.name}`}>
      <div className="stack">
        <p className="soft">
          Each fork is a session of its own with the files this one has now. Programs that run are not copied, and
          nothing here changes.
        </p>
        <Choices choose={setCount} name="How many" options={counts} value={count} />
      </div>
      <div className="ends">
        <Button onClick={close}>Not now</Button>
        <Button
          icon="fork"
          isBusy={fork.isPending}
          kind="main"
          onClick={() => fork.mutate({ id: session.id, count: Number(count) })}
        >
          Fork
        </Button>
      </div>
    </Dialog>
  )
}
