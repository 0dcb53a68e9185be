import { Fault } from "@warren/base/fault.ts"
import type { ReactElement } from "react"
import { Store, useStore } from "../data/store.ts"
import { Button } from "./button.tsx"
import { sentence } from "./sentence.ts"

interface Toast {
  readonly id: number
  readonly kind: "plain" | "bad"
  readonly text: string
  readonly hint?: string | undefined
}

const shownMax = 4
const plainMs = 4_000
const badMs = 10_000

const toasts = new Store<readonly Toast[]>([])
let last = 0

function add(kind: Toast["kind"], text: string, hint?: string): void {
  const id = ++last
  toasts.set([...toasts.value, { id, kind, text, hint }].slice(-shownMax))
  setTimeout(() => drop(id), kind === "bad" ? badMs : plainMs)
}

function drop(id: number): void {
  toasts.set(toasts.value.filter((one) => one.id !== id))
}

/** Says something at the edge of the page for a while. */
export const toast = {
  say: (text: string): void => add("plain", text),
  fault(thrown: unknown): void {
    const { message, hint } = Fault.from(thrown)
    add("bad", sentence(message), hint)
  },
}

export function Toasts(): ReactElement {
  const shown = useStore(toasts)
  return (
    <div aria-live="polite" className="toasts" role="status">
      {shown.map(({ id, kind, text, hint }) => (
        <div className="toast" data-kind={kind} key={id}>
          <div className="spread">
            {text}
            {hint && <div className="hint">{hint}</div>}
          </div>
          <Button aria-label="Dismiss" icon="close" kind="quiet" onClick={() => drop(id)} size="small" />
        </div>
      ))}
    </div>
  )
}
