import { useEffect, useRef, useState, type ReactElement, type ReactNode } from "react"
import { Button } from "./button.tsx"
import { Icon, type IconName } from "./icon.tsx"

interface MenuProps {
  readonly name: string
  readonly icon?: IconName
  /** What stands on the button, if more than the icon. */
  readonly shown?: ReactNode
  readonly children: ReactNode
}

/** A button that opens a list. It closes when something in it was chosen, at Escape, and at a click elsewhere. */
export function Menu({ name, icon = "more", shown, children }: MenuProps): ReactElement {
  const [isOpen, open] = useState(false)
  const place = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (!isOpen) return
    place.current?.querySelector<HTMLElement>(".menu-list button:not(:disabled), .menu-list a")?.focus()
    const elsewhere = ({ target }: Event): void => {
      if (!place.current?.contains(target as Node)) open(false)
    }
    addEventListener("pointerdown", elsewhere)
    return () => removeEventListener("pointerdown", elsewhere)
  }, [isOpen])
  return (
    <div className="menu" onKeyDown={(event) => isOpen && steer(event, place.current, () => open(false))} ref={place}>
      <Button
        aria-expanded={isOpen}
        aria-haspopup="menu"
        aria-label={name}
        icon={icon}
        kind="quiet"
        onClick={() => open(!isOpen)}
        size="small"
      >
        {shown}
      </Button>
      {isOpen && (
        <div className="menu-list" onClick={() => open(false)} role="menu">
          {children}
        </div>
      )}
    </div>
  )
}

interface MenuItemProps {
  readonly icon?: IconName
  readonly isDanger?: boolean
  readonly disabled?: boolean
  readonly children: ReactNode
  act(): void
}

export function MenuItem({ icon, isDanger = false, disabled = false, children, act }: MenuItemProps): ReactElement {
  return (
    <button className={isDanger ? "danger" : ""} disabled={disabled} onClick={act} role="menuitem" type="button">
      {icon && <Icon name={icon} />}
      {children}
    </button>
  )
}

function steer(
  event: { readonly key: string; preventDefault(): void; stopPropagation(): void },
  place: HTMLElement | null,
  close: () => void,
): void {
  const items = [...(place?.querySelectorAll<HTMLElement>(".menu-list button:not(:disabled), .menu-list a") ?? [])]
  const at = items.indexOf(document.activeElement as HTMLElement)
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]
  if (event.key === "Escape") {
    event.stopPropagation()
    close()
    place?.querySelector("button")?.focus()
  } else if (by !== undefined) {
    event.preventDefault()
    items[(at + by + items.length) % items.length]?.focus()
  }
}
