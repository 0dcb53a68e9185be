import type { Output } from "@warren/sdk/routes.ts"
import { useState, type ReactElement } from "react"
import { useCall } from "../../data/query.ts"
import { Failure, Waiting } from "../../parts/empty-state.tsx"
import { Icon } from "../../parts/icon.tsx"
import { Diff } from "../chat/diff.tsx"
import { unifiedDiff } from "../chat/line-diff.ts"

type File = Output<"GET /v1/sessions/{id}/git/files">["files"][number]

interface ChangedFileProps {
  readonly id: string
  readonly folder: string
  readonly against: string
  readonly file: File
  /** At first. */
  readonly isOpen: boolean
}

const letters: Readonly<Record<File["status"], readonly [letter: string, kind: string]>> = {
  added: ["A", "good"],
  modified: ["M", "accent"],
  deleted: ["D", "bad"],
  renamed: ["R", "accent"],
  copied: ["C", "good"],
  type: ["T", "warn"],
  unmerged: ["U", "bad"],
}

/** One line that opens into its diff. */
export function ChangedFile({ file, isOpen: isOpenAtFirst, ...where }: ChangedFileProps): ReactElement {
  const [isOpen, open] = useState(isOpenAtFirst)
  const { path, from, status, additions, deletions } = file
  const [letter, kind] = letters[status]
  return (
    <section className="changed-file">
      <button aria-expanded={isOpen} onClick={() => open(!isOpen)} type="button">
        <span className="turn" data-open={isOpen || undefined}>
          <Icon name="chevron" size={10} />
        </span>
        <span className="badge" data-kind={kind} title={status}>
          {letter}
        </span>
        <span className="cut mono small spread">
          {from && <span className="soft">{from} → </span>}
          {path}
        </span>
        {additions !== undefined && <b className="added">+{additions}</b>}
        {deletions !== undefined && <b className="gone">−{deletions}</b>}
      </button>
      {isOpen && <FileDiff {...where} path={path} />}
    </section>
  )
}

interface FileDiffProps {
  readonly id: string
  readonly folder: string
  readonly against: string
  readonly path: string
}

const lookEveryMs = 4_000

function FileDiff({ id, folder, against, path }: FileDiffProps): ReactElement {
  const input = { id, folder, against, path }
  const { data, error, refetch } = useCall("GET /v1/sessions/{id}/git/diff", input, { everyMs: lookEveryMs })
  if (!data) return error ? <Failure fault={error} retry={() => void refetch()} /> : <Waiting>Comparing…</Waiting>
  const lines = unifiedDiff(data.text.replace(/\n$/, ""))
  if (!lines) return <p className="soft small">No lines to compare: it is empty, or no text.</p>
  return (
    <>
      <Diff lines={lines} />
      {data.isCut && <p className="soft small">It is longer than is shown.</p>}
    </>
  )
}
