import { FitAddon } from "@xterm/addon-fit"
import { SearchAddon } from "@xterm/addon-search"
import { Terminal } from "@xterm/xterm"
import { useEffect, useRef, useState, type ReactElement } from "react"
import { useStore } from "../../data/store.ts"
import { theme } from "../../frame/theme.ts"
import { colours } from "./colours.ts"
import { TerminalFind } from "./terminal-find.tsx"
import { TerminalLine } from "./terminal-line.ts"
import "@xterm/xterm/css/xterm.css"

interface TerminalViewProps {
  readonly session: string
  readonly name: string
  /** Told in place of who looks when what ran in it has ended. */
  ended?(exitCode: number | null): void
}

const scrollback = 10_000

/** A terminal on the page, and its line to the one in the sandbox. */
export function TerminalView({ session, name, ended }: TerminalViewProps): ReactElement {
  const place = useRef<HTMLDivElement>(null)
  const [said, say] = useState<string>()
  const [turn, setTurn] = useState(0)
  const shown = useRef<Terminal>(null)
  const over = useRef(ended)
  over.current = ended
  const [search, setSearch] = useState<SearchAddon>()
  const chosen = useStore(theme)
  useEffect(() => {
    const { current } = place
    if (!current) return
    const terminal = new Terminal({
      fontFamily: getComputedStyle(current).getPropertyValue("--mono"),
      fontSize: 13,
      lineHeight: 1.25,
      cursorBlink: false,
      scrollback,
      // Whatever colours a program chooses, they can be read.
      minimumContrastRatio: 4.5,
      theme: colours(),
      allowProposedApi: false,
      screenReaderMode: false,
    })
    shown.current = terminal
    const fit = new FitAddon()
    const finder = new SearchAddon()
    terminal.loadAddon(fit)
    terminal.loadAddon(finder)
    terminal.attachCustomKeyEventHandler((event) => {
      const isFind = event.ctrlKey && event.shiftKey && event.code === "KeyF"
      if (isFind && event.type === "keydown") setSearch(finder)
      return !isFind
    })
    terminal.open(current)
    fit.fit()
    if (isFocusFree()) terminal.focus()
    const line = new TerminalLine({
      ...{ session, name, terminal, say },
      ...(over.current ? { ended: (exitCode) => over.current?.(exitCode) } : {}),
    })
    const observer = new ResizeObserver(() => fit.fit())
    observer.observe(current)
    return () => {
      observer.disconnect()
      line[Symbol.dispose]()
      terminal.dispose()
      shown.current = null
      setSearch(undefined)
    }
  }, [session, name, turn])
  useColours(shown, chosen)
  return (
    <div className="terminal-room">
      <div className="terminal" ref={place} />
      {search && (
        <TerminalFind
          close={() => {
            setSearch(undefined)
            shown.current?.focus()
          }}
          search={search}
        />
      )}
      {said !== undefined && (
        <div className="terminal-said" role="status">
          {said}
          <button
            className="button"
            data-size="small"
            onClick={() => {
              say(undefined)
              setTurn(turn + 1)
            }}
            type="button"
          >
            Open it again
          </button>
        </div>
      )}
    </div>
  )
}

/** Somebody who writes elsewhere is not torn away: a terminal also comes by itself, when a session wakes. */
function isFocusFree(): boolean {
  const { activeElement } = document
  return activeElement === document.body || activeElement?.closest(".tab-bar, .terminal-bar, .terminal-room") !== null
}

/** Its colours are those of the page, which follow the system. */
function useColours(shown: React.RefObject<Terminal | null>, chosen: string): void {
  useEffect(() => {
    const recolour = (): void => {
      if (shown.current) shown.current.options.theme = colours()
    }
    recolour()
    const dark = matchMedia("(prefers-color-scheme: dark)")
    dark.addEventListener("change", recolour)
    return () => dark.removeEventListener("change", recolour)
  }, [shown, chosen])
}
