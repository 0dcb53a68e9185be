import type { SessionInfo } from "@warren/sdk/session.ts"
import { useState, type ReactElement } from "react"
import { useLocation } from "wouter"
import { useAsk } from "../data/query.ts"
import { putSession } from "../data/sessions.ts"
import { Field } from "../parts/field.tsx"
import { FormDialog } from "../parts/form-dialog.tsx"

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
  const send = (): void => rename.mutate({ id: session.id, name, ttlMs: session.ttlMs ?? null })
  return (
    <FormDialog act="Rename" close={close} isBusy={rename.isPending} leave="Leave it" send={send} title="Rename">
      <Field
        autoFocus
        name="Name"
        onChange={({ target }) => setName(target.value)}
        said="Lower-case letters, digits and dashes."
        value={name}
        wrong={rename.error?.message}
      />
    </FormDialog>
  )
}
