import type { Fault } from "@warren/base/fault.ts"
import type { ReactElement, ReactNode } from "react"
import { useLocation } from "wouter"
import { Button } from "../../parts/button.tsx"
import { EmptyState, Failure } from "../../parts/empty-state.tsx"

interface LackingProps {
  readonly fault: Fault
  /** What it would be: "An editor". */
  readonly what: string
  /** The shortest way to have it, where there is one. */
  readonly action?: ReactNode
  retry(): void
}

/** A service that could not be started: most often its image does not have it. */
export function Lacking({ fault, what, action, retry }: LackingProps): ReactElement {
  const [, go] = useLocation()
  if (fault.code !== "unsupported") return <Failure fault={fault} retry={retry} />
  return (
    <EmptyState
      action={
        <div className="row">
          {action}
          <Button kind={action ? "plain" : "main"} onClick={() => go("/images")}>
            See images
          </Button>
          <Button onClick={retry}>Try again</Button>
        </div>
      }
      title={`${what} is not in this image`}
    >
      {sentence(fault.hint ?? fault.message)}
    </EmptyState>
  )
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}
