import { useState, type ReactElement } from "react"
import { useAsk, useCall } from "../../data/query.ts"
import { Button } from "../../parts/button.tsx"
import { Asleep, isAsleep } from "../asleep.tsx"
import type { TabProps } from "../tabs.ts"
import { TerminalView } from "./terminal-view.tsx"
import "../../style/terminal.css"

const listEveryMs = 5_000

/** The terminals of a session. They go on without anybody looking, and everybody who looks sees the same. */
export default function TerminalTab({ session }: TabProps): ReactElement {
  const [name, choose] = useState("main")
  const input = { session: session.id }
  const isAwake = !isAsleep(session)
  const { data } = useCall("GET /v1/sessions/{session}/terminals", input, { isOn: isAwake, everyMs: listEveryMs })
  const close = useAsk("DELETE /v1/sessions/{session}/terminals/{name}", {
    renews: ["GET /v1/sessions/{session}/terminals"],
    done: () => choose("main"),
  })
  if (!isAwake) return <Asleep session={session} what="Its terminals" />
  const names = [...new Set(["main", ...(data?.terminals ?? []).map((one) => one.name), name])]
  const viewers = data?.terminals.find((one) => one.name === name)?.viewers ?? 1
  const next = String(names.length + 1)
  return (
    <>
      <div className="terminal-bar" data-only={names.length === 1 || undefined}>
        {names.length > 1 && (
          <div aria-label="Terminals" className="tab-list" role="tablist">
            {names.map((one) => (
              <button aria-selected={one === name} key={one} onClick={() => choose(one)} role="tab" type="button">
                {one}
              </button>
            ))}
          </div>
        )}
        <span className="spread" />
        {viewers > 1 && <span className="badge">{viewers} look at this</span>}
        {name !== "main" && (
          <Button
            aria-label="End this terminal"
            icon="trash"
            kind="quiet"
            onClick={() => close.mutate({ session: session.id, name })}
            size="small"
          />
        )}
        <Button aria-label="Another terminal" icon="plus" kind="quiet" onClick={() => choose(next)} size="small" />
      </div>
      <TerminalView key={`${session.id} ${name}`} name={name} session={session.id} />
    </>
  )
}
