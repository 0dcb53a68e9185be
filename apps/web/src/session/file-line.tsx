import { useState, type ReactElement, type ReactNode } from "react"
import { Icon } from "../parts/icon.tsx"

interface FileLineProps {
  /** A letter for what is the matter with it, its colour, and the word for who points at it. */
  readonly mark: readonly [letter: string, kind: string, said: string]
  readonly path: ReactNode
  /** At the end of the line. */
  readonly more: ReactNode
  /** At first. */
  readonly isOpen: boolean
  /** Its diff, made when the line is opened. */
  children(): ReactNode
}

/** A file that differs: one line that opens into its diff. */
export function FileLine({ mark, path, more, isOpen: isOpenAtFirst, children }: FileLineProps): ReactElement {
  const [isOpen, open] = useState(isOpenAtFirst)
  const [letter, kind, said] = mark
  return (
    <section className="changed-file">
      <button aria-expanded={isOpen} onClick={() => open(!isOpen)} type="button">
        <span className="turn" data-open={isOpen || undefined}>
          <Icon name="chevron" size={10} />
        </span>
        <span className="badge" data-kind={kind} title={said}>
          {letter}
        </span>
        <span className="cut mono small spread">{path}</span>
        {more}
      </button>
      {isOpen && children()}
    </section>
  )
}
