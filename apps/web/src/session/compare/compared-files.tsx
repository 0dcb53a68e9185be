import type { Output } from "@warren/sdk/routes.ts"
import type { SessionInfo } from "@warren/sdk/session.ts"
import type { ReactElement } from "react"
import { useCall } from "../../data/query.ts"
import { EmptyState, Failure, Waiting } from "../../parts/empty-state.tsx"
import { Asleep, isAsleep } from "../asleep.tsx"
import { FileLine } from "../file-line.tsx"
import { FileDifference } from "./file-difference.tsx"

type File = Output<"GET /v1/sessions/{id}/compare/{other}">["files"][number]

interface Both {
  readonly session: SessionInfo
  readonly other: SessionInfo
}

const lookEveryMs = 10_000

/** As the second differs from the first. */
const letters: Readonly<Record<File["where"], readonly [letter: string, kind: string, said: string]>> = {
  here: ["−", "bad", "only here"],
  there: ["+", "good", "only there"],
  both: ["≠", "accent", "not the same"],
}

/** The files that differ, one line each that opens into its diff. */
export function ComparedFiles({ session, other }: Both): ReactElement {
  const sleeper = [session, other].find(isAsleep)
  const input = { id: session.id, other: other.id }
  const { data, error, refetch } = useCall("GET /v1/sessions/{id}/compare/{other}", input, {
    isOn: !sleeper,
    everyMs: lookEveryMs,
  })
  if (sleeper) return <Asleep session={sleeper} what={`The files of ${sleeper.name}`} />
  if (!data) return error ? <Failure fault={error} retry={() => void refetch()} /> : <Waiting>Comparing…</Waiting>
  const { files, folder, isCut } = data
  if (files.length === 0)
    return (
      <EmptyState title="No file differs">
        {placeOf(folder)} is the same in both. What programs make again, such as node_modules, is not looked at.
      </EmptyState>
    )
  return (
    <div className="changed-files">
      <p className="soft tiny">
        {files.length} {files.length === 1 ? "file differs" : "files differ"} in {placeOf(folder)}
        {isCut && " · there are more"}
      </p>
      {files.map((file) => (
        <Line file={file} folder={folder} isOpen={files.length === 1} key={file.path} other={other} session={session} />
      ))}
    </div>
  )
}

/** The root stands for where people work. */
function placeOf(folder: string): ReactElement {
  return folder === "/" ? <>the workspace and the home</> : <code>{folder}</code>
}

interface LineProps extends Both {
  readonly file: File
  readonly folder: string
  /** At first. */
  readonly isOpen: boolean
}

function Line({ file, folder, session, other, isOpen }: LineProps): ReactElement {
  const mark = letters[file.where]
  const names = { here: `only in ${session.name}`, there: `only in ${other.name}`, both: mark[2] }
  return (
    <FileLine
      isOpen={isOpen}
      mark={mark}
      more={<span className="soft tiny">{names[file.where]}</span>}
      path={file.path}
    >
      {() => <FileDifference file={file} folder={folder} other={other.id} session={session.id} />}
    </FileLine>
  )
}
