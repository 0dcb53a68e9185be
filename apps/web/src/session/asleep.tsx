import type { SessionInfo } from "@warren/sdk/session.ts"
import { useEffect, type ReactElement } from "react"
import { useAsk } from "../data/query.ts"
import { putSession } from "../data/sessions.ts"
import { isFree } from "../frame/shortcuts.tsx"
import { Button } from "../parts/button.tsx"
import { EmptyState } from "../parts/empty-state.tsx"

const unawake: ReadonlySet<SessionInfo["state"]> = new Set<SessionInfo["state"]>([
  "hibernated",
  "hibernating",
  "restoring",
  "stopped",
  "stopping",
  "failed",
  "starting",
])

export function isAsleep({ state }: SessionInfo): boolean {
  return unawake.has(state)
}

const titles: Readonly<Partial<Record<SessionInfo["state"], string>>> = {
  hibernated: "Asleep",
  hibernating: "Going to sleep…",
  restoring: "Waking…",
  starting: "Starting…",
  stopping: "Stopping…",
  stopped: "Stopped",
  failed: "It failed",
}

interface AsleepProps {
  readonly session: SessionInfo
  /** What is not to be seen meanwhile. */
  readonly what: string
}

/** In place of something that only an awake session has. A key wakes it, as does the button. */
export function Asleep({ session, what }: AsleepProps): ReactElement {
  const { id, state, detail } = session
  const restore = useAsk("POST /v1/sessions/{id}/restore", { done: (changed) => putSession(id, changed) })
  const { mutate, isPending } = restore
  const isStill = state === "hibernated" || state === "stopped" || state === "failed"
  useEffect(() => {
    if (state !== "hibernated" || isPending) return
    const pressed = (event: KeyboardEvent): void => {
      if (isFree(event) && (event.key === "Enter" || event.key === " ") && event.target === document.body)
        mutate({ id })
    }
    addEventListener("keydown", pressed)
    return () => removeEventListener("keydown", pressed)
  }, [state, isPending, mutate, id])
  return (
    <EmptyState
      action={
        isStill && (
          <Button icon="play" isBusy={isPending} kind="main" onClick={() => mutate({ id })}>
            {state === "hibernated" ? "Wake it" : "Start it again"}
          </Button>
        )
      }
      title={titles[state] ?? state}
    >
      {isStill
        ? `${detail ? `${detail}. ` : ""}Its files are kept. ${what} are here again when it is awake.`
        : undefined}
    </EmptyState>
  )
}
