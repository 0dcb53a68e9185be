import { useEffect, useState, type RefObject } from "react"
import { useLocation } from "wouter"

interface Panels {
  /** The one in sight. */
  readonly at: number
  swiped(): void
  show(panel: number): void
}

const panels = ".sidebar, .main, .pane"

/** On a phone: which of the panels beside each other is in sight. What is opened is brought there, once it is there. */
export function usePanels(frame: RefObject<HTMLDivElement | null>): Panels {
  const [path] = useLocation()
  const [at, setAt] = useState(0)
  const [, first = "", second = "", tab] = path.split("/")
  const wanted = first === "s" && tab !== undefined ? 2 : 1
  const opened = `${first}/${second}`
  useEffect(() => {
    const { current } = frame
    if (!current) return
    const bring = (): void => {
      const panel = current.querySelectorAll(panels)[wanted]
      // The code of what was opened may still be on its way: then there is no such panel yet.
      if (!panel?.clientWidth) return
      observer.disconnect()
      current.scrollTo({ left: wanted * current.clientWidth, behavior: "instant" })
    }
    const observer = new MutationObserver(bring)
    observer.observe(current, { childList: true, subtree: true, attributeFilter: ["style"] })
    bring()
    return () => observer.disconnect()
    // Another view of the same session is no other place.
    // oxlint-disable-next-line react/exhaustive-deps -- see above
  }, [frame, opened])
  const swiped = (): void => {
    const { scrollLeft = 0, clientWidth = 1 } = frame.current ?? {}
    setAt(Math.round(scrollLeft / clientWidth))
  }
  const show = (panel: number): void =>
    frame.current?.scrollTo({ left: panel * frame.current.clientWidth, behavior: "smooth" })
  return { at, swiped, show }
}
