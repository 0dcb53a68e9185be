import type { ReactElement, ReactNode } from "react"
import { Button } from "./button.tsx"
import { Dialog } from "./dialog.tsx"

interface ConfirmProps {
  readonly title: string
  /** What the button does: "Delete session". */
  readonly act: string
  readonly isBusy?: boolean
  readonly children: ReactNode
  yes(): void
  close(): void
}

/** For what cannot be undone. */
export function Confirm({ title, act, isBusy = false, children, yes, close }: ConfirmProps): ReactElement {
  return (
    <Dialog close={close} title={title}>
      <p className="soft">{children}</p>
      <div className="ends">
        <Button autoFocus onClick={close}>
          Keep it
        </Button>
        <Button isBusy={isBusy} kind="danger" onClick={yes}>
          {act}
        </Button>
      </div>
    </Dialog>
  )
}
