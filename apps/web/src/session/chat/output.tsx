import { useMemo, useState, type ReactElement } from "react"
import { Button } from "../../parts/button.tsx"
import { CopyButton } from "../../parts/copy-button.tsx"

const shownLines = 24
const searchableFrom = 40
const linesMax = 5_000
// Colours and cursor moves, which mean nothing here.
// oxlint-disable-next-line no-control-regex -- It is about control characters.
const escapes = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-_])/g

/** What a program said: its end first, all of it when asked for, searched when it is long. */
export function Output({ text }: { readonly text: string }): ReactElement {
  const [isWhole, setWhole] = useState(false)
  const [find, setFind] = useState("")
  const lines = useMemo(() => text.replaceAll(escapes, "").replace(/\n$/, "").split("\n"), [text])
  const found = find === "" ? lines : lines.filter((line) => line.toLowerCase().includes(find.toLowerCase()))
  const shown = isWhole || find !== "" ? found.slice(-linesMax) : found.slice(-shownLines)
  const left = found.length - shown.length
  return (
    <figure className="output">
      <div className="output-tools">
        {lines.length >= searchableFrom && (
          <input
            aria-label="Search in the output"
            className="input"
            onChange={({ target }) => setFind(target.value)}
            placeholder={`Search ${lines.length} lines`}
            type="search"
            value={find}
          />
        )}
        <CopyButton name="Copy the output" text={text} />
      </div>
      <pre tabIndex={0}>
        {left > 0 && (
          <Button kind="quiet" onClick={() => setWhole(true)} size="small">
            {left} more lines above
          </Button>
        )}
        {shown.join("\n")}
      </pre>
    </figure>
  )
}
