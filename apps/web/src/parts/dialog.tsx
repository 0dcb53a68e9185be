import { useEffect, useId, useRef, type ReactElement, type ReactNode } from "react"

interface DialogProps {
  readonly title: string
  readonly className?: string
  readonly children: ReactNode
  close(): void
}

/** Open while it is there. Escape and a click beside it close it; the focus returns to where it was. */
export function Dialog({ title, className = "", children, close }: DialogProps): ReactElement {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const shown = dialog.current
    if (shown && !shown.open) shown.showModal()
    return () => shown?.close()
  }, [])
  return (
    // oxlint-disable-next-line jsx-a11y/click-events-have-key-events -- Escape is the key, and the browser knows it
    <dialog
      aria-labelledby={id}
      className={`dialog ${className}`}
      onClick={({ target, currentTarget }) => target === currentTarget && close()}
      // Told late: one that was shown again meanwhile is not meant.
      onClose={({ currentTarget }) => currentTarget.open || close()}
      ref={dialog}
    >
      <h2 className={className.includes("palette") ? "unseen" : ""} id={id}>
        {title}
      </h2>
      {children}
    </dialog>
  )
}
