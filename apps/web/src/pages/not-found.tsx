import type { ReactElement } from "react"
import { useLocation } from "wouter"
import { Button } from "../parts/button.tsx"
import { EmptyState } from "../parts/empty-state.tsx"

export function NotFound({ title = "There is nothing here" }: { readonly title?: string }): ReactElement {
  const [path, go] = useLocation()
  return (
    <main className="main">
      <EmptyState action={<Button onClick={() => go("/")}>To your sessions</Button>} title={title}>
        Perhaps it was deleted, or <code>{path}</code> belongs to somebody else.
      </EmptyState>
    </main>
  )
}
