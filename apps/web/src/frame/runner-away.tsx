import type { Fault } from "@warren/base/fault.ts"
import type { ReactElement } from "react"
import { lookAgain } from "../data/sessions.ts"
import { Button } from "../parts/button.tsx"
import { EmptyState } from "../parts/empty-state.tsx"
import { sentence } from "../parts/sentence.ts"

/** In place of everything that a runner has to tell. It goes by itself as soon as there is one. */
export function RunnerAway({ fault: { message, hint } }: { readonly fault: Fault }): ReactElement {
  return (
    <main className="main">
      <EmptyState
        action={
          <Button icon="refresh" onClick={lookAgain}>
            Look again
          </Button>
        }
        title={sentence(message)}
      >
        A runner is the program that keeps your sessions and everything in them, for you alone.{" "}
        {hint && `${sentence(hint)}. `}This page looks for it by itself, and goes on when it is there.
      </EmptyState>
    </main>
  )
}
