import { useEffect, useState, type ReactElement } from "react"
import { Button } from "./button.tsx"
import { toast } from "./toast.tsx"

const shownMs = 1_500

export function CopyButton({ text, name = "Copy" }: { readonly text: string; readonly name?: string }): ReactElement {
  const [isDone, done] = useState(false)
  useEffect(() => {
    if (!isDone) return
    const timer = setTimeout(() => done(false), shownMs)
    return () => clearTimeout(timer)
  }, [isDone])
  const copy = (): void => void navigator.clipboard.writeText(text).then(() => done(true), toast.fault)
  return (
    <Button
      aria-label={isDone ? "Copied" : name}
      icon={isDone ? "check" : "copy"}
      kind="quiet"
      onClick={copy}
      size="small"
    />
  )
}
