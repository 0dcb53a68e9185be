import type { SessionInfo } from "@warren/sdk/session.ts"
import type { ReactElement } from "react"
import { lookInWords, lookOf, type Look } from "./look.ts"

/** A shape for each, so that nobody has to tell colours apart. */
const shapes: Readonly<Record<Look, ReactElement>> = {
  working: <circle cx="6" cy="6" fill="currentColor" r="4.5" />,
  asks: (
    <>
      <circle cx="6" cy="6" fill="none" r="4" stroke="currentColor" strokeWidth="1.5" />
      <path d="M6 2a4 4 0 0 1 0 8z" fill="currentColor" />
    </>
  ),
  idle: <circle cx="6" cy="6" fill="none" r="4" stroke="currentColor" strokeWidth="1.5" />,
  paused: <path d="M4 2.5v7M8 2.5v7" stroke="currentColor" strokeLinecap="round" strokeWidth="1.8" />,
  asleep: <path d="M10 7.4A4.5 4.5 0 0 1 4.6 2 4.5 4.5 0 1 0 10 7.4z" fill="currentColor" />,
  moving: <circle cx="6" cy="6" fill="none" r="4" stroke="currentColor" strokeDasharray="2.5 2" strokeWidth="1.5" />,
  over: <path d="M3 3h6v6H3z" fill="none" stroke="currentColor" strokeWidth="1.4" />,
  failed: <path d="M3 3l6 6M9 3l-6 6" stroke="currentColor" strokeLinecap="round" strokeWidth="1.8" />,
}

interface StateDotProps {
  readonly session: SessionInfo
  /** The words stand beside it. */
  readonly isSilent?: boolean
}

export function StateDot({ session, isSilent = false }: StateDotProps): ReactElement {
  const look = lookOf(session)
  const words = lookInWords(session)
  return (
    <svg
      aria-hidden={isSilent || undefined}
      aria-label={isSilent ? undefined : words}
      className="state-dot"
      data-look={look}
      role={isSilent ? undefined : "img"}
      viewBox="0 0 12 12"
    >
      {!isSilent && <title>{words}</title>}
      {shapes[look]}
    </svg>
  )
}
