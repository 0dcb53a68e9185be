import type { Fault } from "@warren/base/fault.ts"
import type { ReactElement, ReactNode } from "react"
import type { Pages } from "../data/pages.ts"
import { Button } from "../parts/button.tsx"
import { Failure, Waiting } from "../parts/empty-state.tsx"
import "../style/pages.css"

interface PageProps {
  readonly title: string
  /** What it is for, in one sentence. */
  readonly said: ReactNode
  /** What one most often comes here for. */
  readonly action?: ReactNode
  readonly children: ReactNode
}

/** A page of the frame: what it is, the one button, and what there is. */
export function Page({ title, said, action, children }: PageProps): ReactElement {
  return (
    <main className="main">
      <div className="page">
        <div className="page-inner">
          <div className="page-head">
            <div className="spread">
              <h1>{title}</h1>
              <p>{said}</p>
            </div>
            {action}
          </div>
          {children}
        </div>
      </div>
    </main>
  )
}

interface ListProps<T> {
  readonly items: readonly T[] | undefined
  readonly error: Fault | null
  /** Instead of a list with nothing in it. */
  readonly empty: ReactNode
  retry(): void
  children(items: readonly T[]): ReactNode
}

/** What was read, or why there is nothing to see. */
export function List<T>({ items, error, empty, retry, children }: ListProps<T>): ReactElement {
  if (items && items.length > 0) return <>{children(items)}</>
  if (error) return <Failure fault={error} retry={retry} />
  if (!items) return <Waiting>Reading…</Waiting>
  return <>{empty}</>
}

export function More({ pages }: { readonly pages: Pages<unknown> }): ReactElement | null {
  if (!pages.more) return null
  return (
    <div>
      <Button isBusy={pages.isLoadingMore} onClick={pages.more} size="small">
        Show more
      </Button>
    </div>
  )
}
