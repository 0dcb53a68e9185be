import type { SessionInfo } from "@warren/sdk/session.ts"
import { useState, type ReactElement } from "react"
import { useWoke } from "../data/sessions.ts"
import { Button } from "../parts/button.tsx"
import { lookInWords, lookOf } from "../parts/look.ts"
import { StateDot } from "../parts/state-dot.tsx"
import { duration, useTick } from "../parts/when.tsx"
import type { PaneState, PaneView } from "./pane-state.ts"
import { SessionMenu } from "./session-menu.tsx"
import { StartAgent } from "./start-agent.tsx"

interface SessionHeadProps {
  readonly session: SessionInfo
  readonly pane: PaneState
  readonly view: PaneView
}

export function SessionHead({ session, pane, view }: SessionHeadProps): ReactElement {
  return (
    <header className="session-head">
      <div className="spread">
        <div className="row">
          <h1 className="cut">{session.name}</h1>
          <StateLine session={session} />
        </div>
        <p className="cut soft tiny">{aboutOf(session)}</p>
      </div>
      {!session.agent && <StartAgent session={session} />}
      <SessionMenu session={session} />
      {view === "hidden" && (
        <Button
          aria-label="Show what is inside"
          icon="pane"
          kind="quiet"
          onClick={() => pane.show("split")}
          size="small"
        />
      )}
    </header>
  )
}

function aboutOf({ agent, image, driver, network, workspace, parent }: SessionInfo): string {
  const reach = { none: "no network", proxy: "allowed hosts", bridge: "public network", host: "the host's network" }[
    network.mode
  ]
  const open = network.mode === "proxy" && network.access === "all-public" ? "public hosts" : reach
  const known = [agent?.adapter, image, driver, open, workspace && `workspace ${workspace}`, parent && "a fork"]
  return known.filter(Boolean).join(" · ")
}

/** `● working 2m 14s`; after a sleep, how quickly it woke. */
function StateLine({ session }: { readonly session: SessionInfo }): ReactElement {
  const look = lookOf(session)
  const words = lookInWords(session)
  const woke = useWoke(session.id)
  const since = useSince(`${session.id} ${look}`)
  const isBusy = look === "working" || look === "moving"
  useTick(1_000, isBusy)
  return (
    <span className="state-line" data-look={look} role="status">
      <StateDot isSilent session={session} />
      <span className="cut">{words}</span>
      {isBusy && Date.now() - since > 1_000 && (
        <span className="soft">{duration(Math.floor((Date.now() - since) / 1_000) * 1_000)}</span>
      )}
      {woke !== undefined && look !== "asleep" && (
        <span className="badge" data-kind="good">
          woke in {duration(woke)}
        </span>
      )}
    </span>
  )
}

/** When it began to look so, as far as this page has seen. */
function useSince(what: string): number {
  const [known, setKnown] = useState({ what, at: Date.now() })
  if (known.what !== what) setKnown({ what, at: Date.now() })
  return known.at
}
