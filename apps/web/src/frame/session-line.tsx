import type { SessionInfo } from "@warren/sdk/session.ts"
import type { ReactElement } from "react"
import { Link } from "wouter"
import { lookInWords, lookOf } from "../parts/look.ts"
import { StateDot } from "../parts/state-dot.tsx"
import { When } from "../parts/when.tsx"

export function SessionLine({
  session,
  isChosen,
}: {
  readonly session: SessionInfo
  readonly isChosen: boolean
}): ReactElement {
  return (
    <Link
      aria-current={isChosen ? "page" : undefined}
      className="line"
      data-state={lookOf(session)}
      href={`/s/${session.name}`}
      title={`${session.name} – ${lookInWords(session)}`}
    >
      <StateDot session={session} />
      <span className="cut spread">{session.name}</span>
      <When at={session.usedAt} />
    </Link>
  )
}
