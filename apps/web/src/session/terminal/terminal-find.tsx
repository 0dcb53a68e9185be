import type { SearchAddon } from "@xterm/addon-search"
import { useState, type KeyboardEvent, type ReactElement } from "react"
import { Button } from "../../parts/button.tsx"

interface TerminalFindProps {
  readonly search: SearchAddon
  close(): void
}

/** Finds a text in what the terminal has shown. Enter goes up to the one before. */
export function TerminalFind({ search, close }: TerminalFindProps): ReactElement {
  const [text, setText] = useState("")
  const [isThere, setThere] = useState(true)
  const look = (words: string): void => {
    setText(words)
    setThere(words === "" || search.findPrevious(words, { incremental: true }))
  }
  const pressed = (event: KeyboardEvent): void => {
    if (event.key === "Escape") close()
    if (event.key === "Enter") setThere(event.shiftKey ? search.findNext(text) : search.findPrevious(text))
  }
  return (
    <div className="terminal-find">
      <input
        aria-invalid={!isThere || undefined}
        aria-label="Find in the terminal"
        autoFocus
        className="input"
        onChange={({ target }) => look(target.value)}
        onKeyDown={pressed}
        placeholder="Find"
        type="search"
        value={text}
      />
      <Button aria-label="Close" icon="close" kind="quiet" onClick={close} size="small" />
    </div>
  )
}
