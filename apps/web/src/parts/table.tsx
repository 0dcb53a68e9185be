import type { ReactElement, ReactNode } from "react"

/** What stands above a column; one that only a wide page has room for says so. */
type Head = string | { readonly name: string; readonly isWide: true }

interface TableProps {
  readonly heads: readonly Head[]
  /** The last column is for buttons, and its name only for who cannot see them. */
  readonly hasActions?: boolean
  /** Its rows. */
  readonly children: ReactNode
}

export function Table({ heads, hasActions = false, children }: TableProps): ReactElement {
  return (
    <table className="table">
      <thead>
        <tr>
          {heads.map((head) => (
            <HeadCell head={head} key={typeof head === "string" ? head : head.name} />
          ))}
          {hasActions && (
            <th>
              <span className="unseen">Actions</span>
            </th>
          )}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  )
}

function HeadCell({ head }: { readonly head: Head }): ReactElement {
  return typeof head === "string" ? <th>{head}</th> : <th className="wide-only">{head.name}</th>
}
