import { useCallback, useEffect, useState } from "react"
import { tabs, type Tab } from "./tabs.ts"

export type PaneView = "split" | "full" | "hidden"

export interface PaneState {
  readonly tab: Tab
  readonly view: PaneView
  /** Of the room there is. */
  readonly percent: number
  show(view: PaneView): void
  resize(percent: number): void
}

const narrowest = 20
const widest = 75
const usual = 46

/** Which view a session shows, and how much room it has: remembered for each session, in this browser. */
export function usePane(id: string, asked: string | undefined): PaneState {
  const [view, setView] = useState<PaneView>(() => read(`${id}.view`, ["split", "full", "hidden"]) ?? "split")
  const [percent, setPercent] = useState(() => Number(localStorage.getItem("warren.pane")) || usual)
  const remembered = read(
    `${id}.tab`,
    tabs.map(({ name }) => name),
  )
  const tab = tabs.find(({ name }) => name === (asked ?? remembered)) ?? tabs[0]
  useEffect(() => {
    if (id !== "" && asked !== undefined) localStorage.setItem(`warren.${id}.tab`, tab.name)
  }, [id, asked, tab.name])
  const show = useCallback(
    (next: PaneView) => {
      setView(next)
      localStorage.setItem(`warren.${id}.view`, next)
    },
    [id],
  )
  const resize = useCallback((next: number) => {
    const fitting = Math.min(widest, Math.max(narrowest, next))
    setPercent(fitting)
    localStorage.setItem("warren.pane", fitting.toFixed(1))
  }, [])
  return { tab, view, percent, show, resize }
}

function read<T extends string>(key: string, known: readonly T[]): T | undefined {
  const value = localStorage.getItem(`warren.${key}`)
  return known.find((one) => one === value)
}
