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

interface ForkDialogProps {
  readonly session: SessionInfo
  /** A message of the turn they go on from: with it, they know what was said up to there. */
  readonly turn?: string
  close(): void
}

/** Other ways from here: new sessions with the files this one has now, or had at a turn. */
export function ForkDialog({ session, turn, close }: ForkDialogProps): ReactElement {
  const [count, setCount] = useState("1")
  const [, go] = useLocation()
  const fork = useAsk("POST /v1/sessions/{id}/fork", {
    done: ({ sessions, files }) => {
      for (const made of sessions) putSession(made.id, made)
      close()
      const [first] = sessions
      if (files === "now") toast.say("Its files are as they are now: no snapshot was taken at that turn")
      else if (sessions.length > 1) toast.say(`${sessions.length} sessions, each with these files`)
      if (first) go(sessions.length > 1 ? `/s/${first.name}/compare` : `/s/${first.name}`)
    },
  })
  return (
    <Dialog close={close} title={turn === undefined ? `Fork ${session.name}` : `Fork ${session.name} from this turn`}>
      <div className="stack">
        <p className="soft">
          {turn === undefined
            ? "Each fork is a session of its own with the files this one has now."
            : "Each fork is a session of its own with this agent, which is told what was said up to this turn. Its files are as they were then where a snapshot has them, and otherwise as they are now."}{" "}
          Programs that run are not copied, and nothing here changes.
        </p>
        <Choices choose={setCount} name="How many" options={counts} value={count} />
      </div>
      <div className="ends">
        <Button onClick={close}>Not now</Button>
        <Button
          icon="fork"
          isBusy={fork.isPending}
          kind="main"
          onClick={() => fork.mutate({ id: session.id, count: Number(count), ...(turn === undefined ? {} : { turn }) })}
        >
          Fork
        </Button>
      </div>
    </Dialog>
  )
}
