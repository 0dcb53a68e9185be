import type { CallRoute, Input } from "@warren/sdk/routes.ts"
import { useState, type ReactElement, type ReactNode } from "react"
import { useAsk } from "../data/query.ts"
import { Button } from "./button.tsx"
import { Confirm } from "./confirm.tsx"

interface DiscardProps<R extends CallRoute> {
  /** What it does to what: "Forget GARDEN_KEY". */
  readonly name: string
  /** Once more, on the button that does it: "Forget it". */
  readonly act: string
  readonly route: R
  readonly input: Input<R>
  /** Where it was listed. */
  readonly renews: readonly CallRoute[]
  /** What that means. */
  readonly children: ReactNode
}

/** Takes something away for good, and asks first. */
export function Discard<R extends CallRoute>(props: DiscardProps<R>): ReactElement {
  const { name, act, route, input, renews, children } = props
  const [isAsking, ask] = useState(false)
  const remove = useAsk(route, { renews, done: () => ask(false) })
  return (
    <>
      <Button aria-label={name} icon="trash" kind="quiet" onClick={() => ask(true)} size="small" />
      {isAsking && (
        <Confirm
          act={act}
          close={() => ask(false)}
          isBusy={remove.isPending}
          title={`${name}?`}
          yes={() => remove.mutate(input)}
        >
          {children}
        </Confirm>
      )}
    </>
  )
}
