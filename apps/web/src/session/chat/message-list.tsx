import { useVirtualizer } from "@tanstack/react-virtual"
import {
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
  type KeyboardEvent,
  type ReactElement,
  type ReactNode,
} from "react"
import { Button } from "../../parts/button.tsx"
import type { ChatState } from "./chat-state.ts"
import { Message } from "./message.tsx"

interface MessageListProps {
  readonly state: ChatState
  /** What stands behind the last message. */
  readonly children: ReactNode
  /** Offered at the end of each turn. */
  readonly fork?: (messageId: string) => void
  earlier(): Promise<boolean>
}

const guessedHeight = 72
/** This close to the end counts as being there. */
const endPx = 48
/** This close to the beginning, what was before is brought. */
const nearPx = 600

/**
 * Only what is in sight is there, so ten thousand messages cost as much as ten. At the end it stays at the end; anywhere else it holds
 * still and says how much is new.
 */
export function MessageList({ state, children, fork, earlier }: MessageListProps): ReactElement {
  const { messages, hasEarlier, agent, tools } = state
  const scroller = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(true)
  const [seen, setSeen] = useState(messages.at(-1)?.seq ?? 0)
  const [isAway, setAway] = useState(false)
  const list = useVirtualizer({
    count: messages.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => guessedHeight,
    getItemKey: (index) => messages[index]?.id ?? index,
    overscan: 6,
    paddingStart: 16,
  })
  const total = list.getTotalSize()
  useHeld(scroller, isAtEnd, messages[0]?.id, total)
  const toEnd = (): void => scroller.current?.scrollTo({ top: scroller.current.scrollHeight })
  // Whatever has grown, the end stays in sight for whoever was there.
  useLayoutEffect(() => {
    if (isAtEnd.current) toEnd()
  })
  const bring = useBringing(scroller, earlier)
  const scrolled = (): void => {
    const { scrollTop = 0, scrollHeight = 0, clientHeight = 0 } = scroller.current ?? {}
    isAtEnd.current = scrollHeight - scrollTop - clientHeight < endPx
    setAway(!isAtEnd.current)
    if (isAtEnd.current) setSeen(messages.at(-1)?.seq ?? 0)
    if (scrollTop <= nearPx && hasEarlier) bring("some")
  }
  const pressed = ({ key }: KeyboardEvent): void => {
    if (key === "Home" && hasEarlier) bring("all")
  }
  useGrowth(scroller, () => isAtEnd.current && toEnd())
  const queued = new Set(agent.prompts.filter((one) => one.state === "queued").map(({ messageId }) => messageId))
  // From the end: what was brought from before is not new.
  const unseen = messages.length - 1 - messages.findLastIndex(({ seq }) => seq <= seen)
  return (
    <div className="message-room">
      <div
        aria-label="Conversation"
        className="messages"
        onKeyDown={pressed}
        onScroll={scrolled}
        ref={scroller}
        role="log"
        tabIndex={0}
      >
        <div className="messages-all" style={{ height: total }}>
          {list.getVirtualItems().map(({ key, index, start }) => {
            const message = messages[index]
            if (!message) return null
            return (
              <div
                data-index={index}
                key={key}
                ref={list.measureElement}
                style={{ transform: `translateY(${start}px)` }}
              >
                <Message fork={fork} isQueued={queued.has(message.id)} message={message} tools={tools} />
              </div>
            )
          })}
        </div>
        <div className="messages-end">{children}</div>
      </div>
      {isAway && (
        <Button className="to-end" icon="down" onClick={toEnd} size="small">
          {unseen > 0 ? `${unseen} new` : "To the end"}
        </Button>
      )}
    </div>
  )
}

/** Brings what was said before, a part at a time; or all of it, and then shows how it began. */
function useBringing(
  scroller: React.RefObject<HTMLDivElement | null>,
  earlier: () => Promise<boolean>,
): (how: "some" | "all") => void {
  const [isBringing, wantsAll] = [useRef(false), useRef(false)]
  const run = async (): Promise<void> => {
    let hasMore = await earlier()
    // Whoever has left does not want the rest.
    while (wantsAll.current && hasMore && scroller.current) hasMore = await earlier()
    if (wantsAll.current) requestAnimationFrame(() => scroller.current?.scrollTo({ top: 0, behavior: "instant" }))
  }
  return (how) => {
    wantsAll.current ||= how === "all"
    if (isBringing.current) return
    isBringing.current = true
    run()
      // What could not be brought is asked for again by whoever scrolls on.
      .catch(() => undefined)
      .finally(() => (isBringing.current = wantsAll.current = false))
  }
}

/** When earlier messages are put before those in sight, these stay where they are. */
function useHeld(
  scroller: React.RefObject<HTMLDivElement | null>,
  isAtEnd: React.RefObject<boolean>,
  first: string | undefined,
  total: number,
): void {
  const known = useRef({ first, total })
  useLayoutEffect(() => {
    const before = known.current
    known.current = { first, total }
    if (before.first === first || before.first === undefined || isAtEnd.current || !scroller.current) return
    scroller.current.scrollTop += total - before.total
  }, [scroller, isAtEnd, first, total])
}

function useGrowth(scroller: React.RefObject<HTMLDivElement | null>, grown: () => void): void {
  const told = useRef(grown)
  told.current = grown
  useEffect(() => {
    const { current } = scroller
    if (!current) return
    const observer = new ResizeObserver(() => told.current())
    observer.observe(current)
    for (const child of current.children) observer.observe(child)
    return () => observer.disconnect()
  }, [scroller])
}
