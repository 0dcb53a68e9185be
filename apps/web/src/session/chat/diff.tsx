import type { ReactElement } from "react"
import type { DiffLine } from "./line-diff.ts"

const signs: Readonly<Record<DiffLine["kind"], string>> = { same: " ", gone: "−", new: "+", cut: "⋯" }
const shownMax = 400

export function Diff({ lines }: { readonly lines: readonly DiffLine[] }): ReactElement {
  return (
    <pre className="diff" tabIndex={0}>
      {lines.slice(0, shownMax).map(({ kind, text }, index) => (
        // oxlint-disable-next-line react/no-array-index-key -- lines have no other name, and none moves
        <span data-kind={kind} key={index}>
          <i aria-hidden="true">{signs[kind]}</i>
          {text}
          {"\n"}
        </span>
      ))}
      {lines.length > shownMax && <span data-kind="cut">{lines.length - shownMax} more lines</span>}
    </pre>
  )
}
