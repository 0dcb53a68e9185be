import { useState, type FormEvent, type ReactElement } from "react"
import { useAsk } from "../../data/query.ts"
import { Button } from "../../parts/button.tsx"
import { Dialog } from "../../parts/dialog.tsx"
import { Field, TextField } from "../../parts/field.tsx"

interface PullRequestDialogProps {
  readonly id: string
  readonly folder: string
  close(): void
}

/** Pushes the branch and asks for it to be merged. The key for that stays outside. */
export function PullRequestDialog({ id, folder, close }: PullRequestDialogProps): ReactElement {
  const [title, setTitle] = useState("")
  const [body, setBody] = useState("")
  const make = useAsk("POST /v1/sessions/{id}/git/pull-requests", { isQuiet: true })
  const send = (event: FormEvent): void => {
    event.preventDefault()
    make.mutate({ id, folder, title, body })
  }
  const { error, data } = make
  return (
    <Dialog close={close} title="Pull request">
      {data ? (
        <div className="stack">
          <p>
            <a href={data.url} rel="noreferrer" target="_blank">
              #{data.number}
            </a>{" "}
            asks for <code>{data.head}</code> to be merged into <code>{data.base}</code>.
          </p>
          <div className="ends">
            <Button kind="main" onClick={close}>
              Good
            </Button>
          </div>
        </div>
      ) : (
        <form className="stack" onSubmit={send}>
          <Field
            autoFocus
            name="Title"
            onChange={({ target }) => setTitle(target.value)}
            required
            value={title}
            wrong={error ? `${error.message}${error.hint ? ` – ${error.hint}` : ""}` : undefined}
          />
          <TextField name="Text" onChange={({ target }) => setBody(target.value)} rows={4} value={body} />
          <p className="soft small">
            What is committed is pushed. The session needs the key git:write for the repository.
          </p>
          <div className="ends">
            <Button onClick={close}>Not now</Button>
            <Button isBusy={make.isPending} kind="main" type="submit">
              Push and ask
            </Button>
          </div>
        </form>
      )}
    </Dialog>
  )
}
