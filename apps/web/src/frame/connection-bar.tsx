import type { ReactElement } from "react"
import { isReconnecting } from "../data/connection.ts"
import { useStore } from "../data/store.ts"

/** Thin, and only while something is missing. Nothing that was typed is lost meanwhile. */
export function ConnectionBar(): ReactElement | null {
  const isLost = useStore(isReconnecting)
  if (!isLost) return null
  return (
    <div className="connection-bar" role="status">
      Reconnecting…
    </div>
  )
}
