import { useEffect, type ReactElement } from "react"
import { useLocation } from "wouter"
import { Store, useStore } from "../data/store.ts"
import { Dialog } from "../parts/dialog.tsx"
import { Palette } from "./palette.tsx"

export const showKeys = new Store(false)
const showPalette = new Store(false)

const keys = [
  [["Ctrl", "K"], "Find a session, a page or an action"],
  [["N"], "New session"],
  [["1"], "Answer a question by its number"],
  [["Enter"], "Send"],
  [["Shift", "Enter"], "A new line"],
  [["Esc"], "Stop what the agent does, from where you write"],
  [["R"], "Write a reply"],
  [["Home"], "How a conversation began, from where it is read"],
  [["Ctrl", "Shift", "F"], "Find in a terminal"],
  [["?"], "These keys"],
] as const

/** The keys that work everywhere, and what they open. */
export function Shortcuts(): ReactElement {
  const [, go] = useLocation()
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault()
        showPalette.set(!showPalette.value)
      } else if (isFree(event) && event.key === "?") showKeys.set(true)
      else if (isFree(event) && event.key === "n") {
        event.preventDefault()
        go("/new")
      }
    }
    addEventListener("keydown", pressed)
    return () => removeEventListener("keydown", pressed)
  }, [go])
  const isFinding = useStore(showPalette)
  return (
    <>
      {isFinding && <Palette close={() => showPalette.set(false)} />}
      <Keys />
    </>
  )
}

function Keys(): ReactElement | null {
  if (!useStore(showKeys)) return null
  return (
    <Dialog close={() => showKeys.set(false)} title="Keys">
      <dl className="keys">
        {keys.map(([pressed, means]) => (
          <div key={means} style={{ display: "contents" }}>
            <dt>
              {pressed.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{means}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}

/** Nobody types anywhere, and no dialog is open: a letter alone may mean something. */
export function isFree({ target, ctrlKey, metaKey, altKey }: KeyboardEvent): boolean {
  if (ctrlKey || metaKey || altKey || document.querySelector("dialog[open]")) return false
  if (!(target instanceof HTMLElement)) return true
  return !/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) && !target.isContentEditable
}
