import type { SessionInfo } from "@warren/sdk/session.ts"
import { Suspense, useRef, type KeyboardEvent, type PointerEvent, type ReactElement } from "react"
import { useLocation } from "wouter"
import { Button } from "../parts/button.tsx"
import { Waiting } from "../parts/empty-state.tsx"
import { Icon } from "../parts/icon.tsx"
import type { PaneState, PaneView } from "./pane-state.ts"
import { tabs } from "./tabs.ts"

interface PaneProps {
  readonly session: SessionInfo
  readonly pane: PaneState
  readonly view: PaneView
}

/** What is beside the conversation: tabs, and the view of the chosen one. */
export function Pane({ session, pane, view }: PaneProps): ReactElement {
  const { view: View, title } = pane.tab
  return (
    <section aria-label={title} className="pane">
      {view === "split" && <Divider pane={pane} />}
      <TabBar pane={pane} session={session} view={view} />
      <div className="pane-view" id="pane-view" key={pane.tab.name}>
        <Suspense fallback={<Waiting>Opening {title.toLowerCase()}…</Waiting>}>
          <View session={session} />
        </Suspense>
      </div>
    </section>
  )
}

function TabBar({ session, pane, view }: PaneProps): ReactElement {
  const [, go] = useLocation()
  const bar = useRef<HTMLDivElement>(null)
  const choose = (name: string): void => go(`/s/${session.name}/${name}`)
  const steer = ({ key }: KeyboardEvent): void => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[key]
    if (by === undefined) return
    const at = tabs.indexOf(pane.tab)
    const next = tabs[(at + by + tabs.length) % tabs.length]
    if (next) choose(next.name)
    bar.current?.querySelectorAll<HTMLElement>("[role=tab]")[tabs.indexOf(next ?? tabs[0])]?.focus()
  }
  return (
    <header className="tab-bar">
      <div aria-label="Views" className="tab-list" onKeyDown={steer} ref={bar} role="tablist">
        {tabs.map((tab) => (
          <button
            aria-controls="pane-view"
            aria-selected={tab === pane.tab}
            key={tab.name}
            onClick={() => choose(tab.name)}
            role="tab"
            tabIndex={tab === pane.tab ? 0 : -1}
            title={tab.title}
            type="button"
          >
            <Icon name={tab.icon} size={14} />
            <span className="tab-name">{tab.title}</span>
          </button>
        ))}
      </div>
      {session.agent && (
        <div className="tab-ends">
          <Button
            aria-label={view === "full" ? "Beside the conversation" : "Over the whole page"}
            icon="expand"
            kind="quiet"
            onClick={() => pane.show(view === "full" ? "split" : "full")}
            size="small"
          />
          <Button aria-label="Hide" icon="close" kind="quiet" onClick={() => pane.show("hidden")} size="small" />
        </div>
      )}
    </header>
  )
}

const stepPercent = 3

/** Between the conversation and the view: dragged, or moved with the arrow keys. */
function Divider({ pane }: { readonly pane: PaneState }): ReactElement {
  const drag = (event: PointerEvent<HTMLDivElement>): void => {
    if (!event.currentTarget.hasPointerCapture(event.pointerId)) return
    const room = event.currentTarget.closest(".session")?.getBoundingClientRect()
    if (room) pane.resize(((room.right - event.clientX) / room.width) * 100)
  }
  const steer = ({ key }: KeyboardEvent): void => {
    if (key === "ArrowLeft") pane.resize(pane.percent + stepPercent)
    if (key === "ArrowRight") pane.resize(pane.percent - stepPercent)
  }
  return (
    <div
      aria-label="Width of the view"
      aria-orientation="vertical"
      aria-valuemax={75}
      aria-valuemin={20}
      aria-valuenow={Math.round(pane.percent)}
      className="divider"
      onKeyDown={steer}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={drag}
      role="separator"
      tabIndex={0}
    />
  )
}
