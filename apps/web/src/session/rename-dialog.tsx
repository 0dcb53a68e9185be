import type { SessionInfo } from "@warren/sdk/session.ts"
import { useState, type FormEvent, type ReactElement } from "react"
import { useLocation } from "wouter"
import { useAsk } from "../data/query.ts"
import { putSession } from "../data/sessions.ts"
import { Button } from "../parts/button.tsx"
import { Dialog } from "../parts/dialog.tsx"
import { Field } from "../parts/field.tsx"

export function RenameDialog({ session, close }: { readonly session: SessionInfo; close(): void }): ReactElement {
  const [name, setName] = useState(session.name)
  const [, go] = useLocation()
  const rename = useAsk("PATCH /v1/sessions/{id}", {
    isQuiet: true,
    done: (changed) => {
      putSession(changed.id, changed)
      close()
      go(`/s/${changed.name}`, { replace: true })
    },
  })
  const send = (event: FormEvent): void => {
    event.preventDefault()
    rename.mutate({ id: session.id, name, ttlMs: session.ttlMs ?? null })
  }
  return (
    <Dialog close={close} title="Rename">
      <form onSubmit={send}>
        <Field
          autoFocus
          name="Name"
          onChange={({ target }) => setName(target.value)}
          said="Lower-case letters, digits and dashes."
          value={name}
          wrong={rename.error?.message}
        />
        <div className="ends">
          <Button onClick={close}>Leave it</Button>
          <Button isBusy={rename.isPending} kind="main" type="submit">
            Rename
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
