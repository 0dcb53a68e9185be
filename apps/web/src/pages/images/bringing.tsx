import { Fault } from "@warren/base/fault.ts"
import type { ReactElement } from "react"
import { Button } from "../../parts/button.tsx"
import { bytes } from "../../parts/when.tsx"
import type { BringingState, Brought } from "./use-bringing.ts"

/** How far an image on its way here is. */
export function Bringing({ bringing }: { readonly bringing: BringingState }): ReactElement | null {
  const { now, stop } = bringing
  if (!now) return null
  const { name, state, lines, fault } = now
  return (
    <div className="card" role="status">
      <div className="row">
        <strong className="cut spread">{name}</strong>
        <span className="soft small">{amount(now)}</span>
        <Button kind="quiet" onClick={stop} size="small">
          {state === "busy" ? "Stop" : "Dismiss"}
        </Button>
      </div>
      {state === "busy" && <Bar now={now} />}
      {fault === undefined ? (
        <p className="cut small soft">{state === "done" ? "It is here." : (lines.at(-1) ?? "Asking for it…")}</p>
      ) : (
        <FaultLine fault={fault} />
      )}
    </div>
  )
}

function Bar({ now: { name, bytes: come, totalBytes } }: { readonly now: Brought }): ReactElement {
  const percent = totalBytes > 0 ? Math.min(100, (come / totalBytes) * 100) : 0
  return (
    <div
      aria-label={`How much of ${name} has come`}
      aria-valuemax={100}
      aria-valuemin={0}
      aria-valuenow={Math.round(percent)}
      className="bar"
      role="progressbar"
    >
      <div style={{ width: `${percent}%` }} />
    </div>
  )
}

function FaultLine({ fault }: { readonly fault: unknown }): ReactElement {
  const { message, hint } = Fault.from(fault)
  return (
    <p className="small" style={{ color: "var(--bad)" }}>
      {message.charAt(0).toUpperCase() + message.slice(1)}
      {hint && ` – ${hint}`}
    </p>
  )
}

function amount({ state, bytes: come, totalBytes }: Brought): string {
  if (state !== "busy" || totalBytes === 0) return ""
  return `${bytes(come)} of ${bytes(totalBytes)}`
}
