import RFB from "@novnc/novnc"
import { useEffect, useRef, useState, type ReactElement } from "react"
import { Button } from "../../parts/button.tsx"
import { EmptyState, Waiting } from "../../parts/empty-state.tsx"
import { Asleep, isAsleep } from "../asleep.tsx"
import type { TabProps } from "../tabs.ts"
import type { Entry } from "./entry.ts"
import { Lacking } from "./lacking.tsx"
import { useService } from "./use-service.ts"
import "../../style/service.css"

/** The screen inside, to be seen and used. */
export default function DesktopTab({ session }: TabProps): ReactElement {
  if (isAsleep(session)) return <Asleep session={session} what="Its screen and files" />
  return <Desktop session={session.id} />
}

function Desktop({ session }: { readonly session: string }): ReactElement {
  const { data, error, refetch, isFetching } = useService(session, "desktop")
  if (error) return <Lacking fault={error} retry={() => void refetch()} what="A desktop" />
  if (!data || isFetching) return <Waiting>Starting the desktop…</Waiting>
  return <Screen again={() => void refetch()} entry={data.entry} key={data.entry.token} />
}

function Screen({ entry, again }: { readonly entry: Entry; again(): void }): ReactElement {
  const place = useRef<HTMLDivElement>(null)
  const [state, setState] = useState<"connecting" | "connected" | "lost">("connecting")
  const [isWatching, watch] = useState(false)
  const screen = useRef<RFB>(undefined)
  useEffect(() => {
    if (!place.current) return
    const made = new RFB(place.current, addressOf(entry), { wsProtocols: ["binary"] })
    made.scaleViewport = true
    made.addEventListener("connect", () => setState("connected"))
    made.addEventListener("disconnect", () => setState("lost"))
    screen.current = made
    return () => made.disconnect()
  }, [entry])
  useEffect(() => {
    if (screen.current) screen.current.viewOnly = isWatching
  }, [isWatching])
  return (
    <>
      <div className="service-bar">
        <span className="soft spread tiny" role="status">
          {{ connecting: "Connecting to the screen…", connected: "The sandbox's screen", lost: "Disconnected" }[state]}
        </span>
        <Button aria-pressed={isWatching} kind="quiet" onClick={() => watch(!isWatching)} size="small">
          {isWatching ? "Use it" : "Only watch"}
        </Button>
        <Button aria-label="Connect again" icon="refresh" kind="quiet" onClick={again} size="small" />
      </div>
      {state === "lost" && (
        <EmptyState
          action={
            <Button icon="refresh" kind="main" onClick={again}>
              Connect again
            </Button>
          }
          title="The screen is not connected"
        >
          What runs on it goes on.
        </EmptyState>
      )}
      <div className="screen" hidden={state === "lost"} ref={place} />
    </>
  )
}

function addressOf({ session, token }: Entry): string {
  return `${location.origin.replace(/^http/, "ws")}/s/${session}/vnc/websockify?token=${encodeURIComponent(token)}`
}
