import { useState, type ReactElement } from "react"
import { Button } from "../../parts/button.tsx"
import { Choices } from "../../parts/choices.tsx"
import { CopyButton } from "../../parts/copy-button.tsx"
import { Dialog } from "../../parts/dialog.tsx"
import { snippetsFor } from "./snippets.ts"

interface ToldOnceProps {
  readonly token: string
  readonly label: string
  readonly form: "warren" | "e2b"
  close(): void
}

/** A token, the only time it is seen, and what to do with it. */
export function ToldOnce({ token, label, form, close }: ToldOnceProps): ReactElement {
  const snippets = snippetsFor(location.origin, token).filter((one) => one.form === form)
  const [name, choose] = useState(snippets[0]?.name ?? "")
  const shown = snippets.find((one) => one.name === name)
  return (
    <Dialog className="wide" close={close} title={`The token ${label}`}>
      <div className="stack">
        <p className="soft">This is the only time it is shown: only its hash is kept.</p>
        <div className="told-once">
          <code data-told>{token}</code>
          <CopyButton name="Copy the token" text={token} />
        </div>
        {snippets.length > 1 && (
          <Choices
            choose={choose}
            name="How it is used"
            options={snippets.map((one) => [one.name, one.name] as const)}
            value={name}
          />
        )}
        {shown && (
          <div className="section">
            <p className="small soft">{shown.said}</p>
            <div className="snippet">
              <pre tabIndex={0}>{shown.code}</pre>
              <CopyButton name="Copy the snippet" text={shown.code} />
            </div>
          </div>
        )}
      </div>
      <div className="ends">
        <Button kind="main" onClick={close}>
          I have it
        </Button>
      </div>
    </Dialog>
  )
}
