import type { Output } from "@warren/sdk/routes.ts"
import type { ReactElement } from "react"
import { useCall } from "../../data/query.ts"
import { Failure, Waiting } from "../../parts/empty-state.tsx"
import { Diff } from "../chat/diff.tsx"
import { unifiedDiff } from "../chat/line-diff.ts"
import { FileLine } from "../file-line.tsx"

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
export function ChangedFile({ file, isOpen, ...where }: ChangedFileProps): ReactElement {
  const { path, from, status, additions, deletions } = file
  const shown = (
    <>
      {from && <span className="soft">{from} → </span>}
      {path}
    </>
  )
  const counts = (
    <>
      {additions !== undefined && <b className="added">+{additions}</b>}
      {deletions !== undefined && <b className="gone">−{deletions}</b>}
    </>
  )
  return (
    <FileLine isOpen={isOpen} mark={[...letters[status], status]} more={counts} path={shown}>
      {() => <FileDiff {...where} path={path} />}
    </FileLine>
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
