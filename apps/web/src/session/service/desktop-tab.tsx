import RFB from "@novnc/novnc"
import { useEffect, useRef, useState, type ReactElement } from "react"
import { Button } from "../../parts/button.tsx"
import { EmptyState, Waiting } from "../../parts/empty-state.tsx"
import { Asleep, isAsleep } from "../asleep.tsx"
import type { TabProps } from "../tabs.ts"
import { entryTo, type Entry } from "./entry.ts"
import { Lacking } from "./lacking.tsx"
import { useService } from "./use-service.ts"
import "../../style/service.css"

/** The screen inside, to be seen and used. */
export default function DesktopTab({ session }: TabProps): ReactElement {
  if (isAsleep(session)) return <Asleep session={session} what="Its screen and files" />
  return <Desktop session={session.id} />
}

function Desktop({ session }: { readonly session: string }): ReactElement {
  const { data, error, refetch } = useService(session, "desktop")
  const [turn, setTurn] = useState(0)
  if (error) return <Lacking fault={error} retry={() => void refetch()} what="A desktop" />
  if (!data) return <Waiting>Starting the desktop…</Waiting>
  return <Screen again={() => setTurn(turn + 1)} key={turn} session={session} />
}

function Screen({ session, again }: { readonly session: string; again(): void }): ReactElement {
  const place = useRef<HTMLDivElement>(null)
  const [state, setState] = useState<"connecting" | "connected" | "lost">("connecting")
  const [isWatching, watch] = useState(false)
  const screen = useRef<RFB>(undefined)
  useEffect(() => {
    const leave = new AbortController()
    connect(session, place.current, leave.signal, setState).then(
      (made) => (screen.current = made),
      () => leave.signal.aborted || setState("lost"),
    )
    return () => leave.abort()
  }, [session])
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
              Connect
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

/** Shows the screen in a place until the signal. */
async function connect(
  session: string,
  place: HTMLElement | null,
  signal: AbortSignal,
  note: (state: "connected" | "lost") => void,
): Promise<RFB | undefined> {
  // A token is good for one connection.
  const entry = await entryTo(session, signal)
  if (!place || signal.aborted) return undefined
  const screen = new RFB(place, addressOf(entry), { wsProtocols: ["binary"] })
  screen.scaleViewport = true
  screen.background = "transparent"
  screen.addEventListener("connect", () => note("connected"))
  screen.addEventListener("disconnect", () => signal.aborted || note("lost"))
  signal.addEventListener("abort", () => screen.disconnect(), { once: true })
  return screen
}

function addressOf({ session, token }: Entry): string {
  return `${location.origin.replace(/^http/, "ws")}/s/${session}/vnc/websockify?token=${encodeURIComponent(token)}`
}
