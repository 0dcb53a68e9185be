import type { ReactElement } from "react"
import { isOfRunner, trouble } from "../data/connection.ts"
import { sessions } from "../data/sessions.ts"
import { useStore } from "../data/store.ts"
import { sentence } from "../parts/sentence.ts"

/** Thin, and only while something is missing. Nothing that was typed is lost meanwhile. */
export function ConnectionBar(): ReactElement | null {
  const fault = useStore(trouble)
  const isKnown = useStore(sessions) !== undefined
  // Without anything of the runner to see, the page itself says what is the matter.
  if (!fault || (isOfRunner(fault) && !isKnown)) return null
  return (
    <div className="connection-bar" role="status">
      {isOfRunner(fault) ? `${sentence(fault.message)}. Trying again…` : "Reconnecting…"}
    </div>
  )
}
