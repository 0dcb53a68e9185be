import type { ReactElement } from "react"
import { useLocation } from "wouter"

/** What a phone shows below: where the swipes lead. */
export function Dock({ at, show }: { readonly at: number; show(panel: number): void }): ReactElement {
  const [path] = useLocation()
  const panels = path.startsWith("/s/") ? ["Sessions", "Chat", "Tools"] : ["Sessions", "Page"]
  return (
    <nav aria-label="Panels" className="dock">
      {panels.map((name, index) => (
        <button aria-current={index === at} key={name} onClick={() => show(index)} type="button">
          {name}
        </button>
      ))}
    </nav>
  )
}
