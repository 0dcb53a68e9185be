import type { ReactElement, ReactNode } from "react"
import { Button } from "./button.tsx"
import { Dialog } from "./dialog.tsx"

interface DialogFormProps {
  /** What the button does: "Seal it". */
  readonly act: string
  /** The other one. */
  readonly leave?: string
  readonly isBusy: boolean
  /** The fields. */
  readonly children: ReactNode
  send(): void
  close(): void
}

/** The form in a dialog: its fields, and the two ways out. */
export function DialogForm(props: DialogFormProps): ReactElement {
  const { act, leave = "Not now", isBusy, children, send, close } = props
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault()
        send()
      }}
    >
      {children}
      <div className="ends">
        <Button onClick={close}>{leave}</Button>
        <Button isBusy={isBusy} kind="main" type="submit">
          {act}
        </Button>
      </div>
    </form>
  )
}

/** Asks for a few things, and does something with them. */
export function FormDialog({ title, ...form }: DialogFormProps & { readonly title: string }): ReactElement {
  return (
    <Dialog close={form.close} title={title}>
      <DialogForm {...form} />
    </Dialog>
  )
}
