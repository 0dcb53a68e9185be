import { Fault } from "@warren/base/fault.ts"
import type { ReactElement, ReactNode } from "react"
import { Button } from "./button.tsx"

interface EmptyStateProps {
  readonly title: string
  /** What it means, in one sentence. */
  readonly children?: ReactNode
  /** The next step: one button. */
  readonly action?: ReactNode
}

/** Where there is nothing to see: what happened, what it means, what to do next. */
export function EmptyState({ title, children, action }: EmptyStateProps): ReactElement {
  return (
    <div className="empty-state">
      <h2>{title}</h2>
      {children && <p>{children}</p>}
      {action}
    </div>
  )
}

/** Something could not be read. */
export function Failure({ fault, retry }: { readonly fault: unknown; retry?(): void }): ReactElement {
  const { message, hint, requestId } = Fault.from(fault)
  return (
    <EmptyState
      action={
        retry && (
          <Button icon="refresh" onClick={retry}>
            Try again
          </Button>
        )
      }
      title="That did not work"
    >
      {message}
      {hint && ` – ${hint}`}
      {requestId && <span className="tiny"> ({requestId})</span>}
    </EmptyState>
  )
}

/** What is waited for; shown only when it takes a while. */
export function Waiting({ children }: { readonly children: ReactNode }): ReactElement {
  return (
    <div className="waiting" role="status">
      {children}
    </div>
  )
}
