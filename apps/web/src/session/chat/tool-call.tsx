import { memo, useMemo, useState, type ReactElement } from "react"
import { Icon } from "../../parts/icon.tsx"
import { duration } from "../../parts/when.tsx"
import type { ToolPart } from "./chat-state.ts"
import { Diff } from "./diff.tsx"
import { countOf, lineDiff, unifiedDiff, type DiffLine } from "./line-diff.ts"
import { Output } from "./output.tsx"
import { argsOf, editOf, resultOf, summaryOf } from "./tool-summary.ts"

interface ToolCallProps {
  readonly part: ToolPart
  readonly tookMs: number | undefined
}

const words: Readonly<Record<ToolPart["status"], string>> = {
  pending: "waits",
  running: "runs",
  completed: "done",
  error: "failed",
}

/** Quicker than this is at once. */
const shownFromMs = 5

/** One line until it is opened. */
export const ToolCall = memo(function ToolCall({ part, tookMs }: ToolCallProps): ReactElement {
  const [isOpen, open] = useState(false)
  const diff = useMemo(() => diffOf(part), [part])
  const isOver = part.status === "completed" || part.status === "error"
  return (
    <div className="tool" data-status={part.status}>
      <button aria-expanded={isOpen} onClick={() => open(!isOpen)} type="button">
        <span className="tool-fold" data-open={isOpen}>
          <Icon name="chevron" size={12} />
        </span>
        <b>{part.tool}</b>
        <span className="cut spread mono">{summaryOf(part)}</span>
        {diff && <Counts lines={diff} />}
        {tookMs !== undefined && tookMs >= shownFromMs && <span className="soft">{duration(tookMs)}</span>}
        <span className="tool-status" data-status={part.status}>
          <span className="unseen">{words[part.status]}</span>
          {isOver && <Icon name={part.status === "error" ? "close" : "check"} size={12} />}
        </span>
      </button>
      {isOpen && <Details diff={diff} part={part} />}
    </div>
  )
})

function Counts({ lines }: { readonly lines: readonly DiffLine[] }): ReactElement {
  const { added, gone } = countOf(lines)
  return (
    <span className="counts">
      <span data-kind="new">+{added}</span> <span data-kind="gone">−{gone}</span>
    </span>
  )
}

function Details({
  part,
  diff,
}: {
  readonly part: ToolPart
  readonly diff: readonly DiffLine[] | undefined
}): ReactElement {
  const result = resultOf(part)
  const { command } = argsOf(part)
  const isCommand = typeof command === "string"
  const isOver = part.status === "completed" || part.status === "error"
  return (
    <div className="tool-details">
      {diff && <Diff lines={diff} />}
      {isCommand && <pre className="command">{command}</pre>}
      {!diff && !isCommand && part.args !== undefined && <Output text={JSON.stringify(part.args, null, 2)} />}
      {result !== "" && !unifiedDiff(result) && <Output text={result} />}
      {result === "" && <p className="soft tiny">{isOver ? "It said nothing." : "Nothing yet."}</p>}
    </div>
  )
}

function diffOf(part: ToolPart): DiffLine[] | undefined {
  const edit = editOf(part)
  if (edit) return lineDiff(edit.before, edit.after)
  return typeof part.result === "string" ? unifiedDiff(part.result) : undefined
}
