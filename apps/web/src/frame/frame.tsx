import { useRef, type ReactElement, type ReactNode } from "react"
import type { Account } from "../data/account.ts"
import { Dock } from "./dock.tsx"
import { usePanels } from "./panels.ts"
import { Sidebar } from "./sidebar.tsx"

interface FrameProps {
  readonly account: Account
  readonly children: ReactNode
}

/** The sessions at the left, what was opened beside them. On a phone each is one swipe from the next. */
export function Frame({ account, children }: FrameProps): ReactElement {
  const frame = useRef<HTMLDivElement>(null)
  const { at, swiped, show } = usePanels(frame)
  return (
    <>
      <div className="frame" onScroll={swiped} ref={frame}>
        <Sidebar account={account} />
        {children}
      </div>
      <Dock at={at} show={show} />
    </>
  )
}
