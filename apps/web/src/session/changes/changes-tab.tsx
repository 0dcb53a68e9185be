import type { Output } from "@warren/sdk/routes.ts"
import { useState, type ReactElement } from "react"
import { useCall } from "../../data/query.ts"
import { Button } from "../../parts/button.tsx"
import { Choices } from "../../parts/choices.tsx"
import { EmptyState, Failure, Waiting } from "../../parts/empty-state.tsx"
import { Icon } from "../../parts/icon.tsx"
import { Asleep, isAsleep } from "../asleep.tsx"
import type { TabProps } from "../tabs.ts"
import { ChangedFile } from "./changed-file.tsx"
import { PullRequestDialog } from "./pull-request-dialog.tsx"
import "../../style/chat.css"
import "../../style/changes.css"

type GitState = Output<"GET /v1/sessions/{id}/git">
type Against = "head" | "base"

const lookEveryMs = 4_000

/** What is not as it was in the repository: file by file. */
export default function ChangesTab({ session }: TabProps): ReactElement {
  const isAwake = !isAsleep(session)
  const git = useCall("GET /v1/sessions/{id}/git", { id: session.id }, { isOn: isAwake, everyMs: lookEveryMs })
  if (!isAwake) return <Asleep session={session} what="Its changes" />
  if (git.data?.isRepository) return <Changes git={git.data} id={session.id} />
  if (git.error) return <Failure fault={git.error} retry={() => void git.refetch()} />
  if (!git.data) return <Waiting>Asking git…</Waiting>
  return (
    <EmptyState title="No repository here">
      <code>{git.data.folder}</code> is in no git repository. Clone one in the terminal, or <code>git init</code>, and
      what changes is shown here.
    </EmptyState>
  )
}

function Changes({ id, git }: { readonly id: string; readonly git: GitState }): ReactElement {
  const [against, compare] = useState<Against>("head")
  const [isAsking, ask] = useState(false)
  const { folder, branch, commit, ahead = 0, behind = 0, remote } = git
  const input = { id, folder, against }
  const { data, error, refetch } = useCall("GET /v1/sessions/{id}/git/files", input, { everyMs: lookEveryMs })
  return (
    <div className="changes">
      <header>
        <Icon name="fork" size={14} />
        <span className="cut spread" title={folder}>
          <strong>{branch ?? "no branch"}</strong>{" "}
          <code className="soft tiny">{commit ? commit.slice(0, 8) : "nothing committed yet"}</code>
          {(ahead > 0 || behind > 0) && (
            <span className="soft tiny">
              {" "}
              {ahead} ahead, {behind} behind
            </span>
          )}
        </span>
        {remote && (
          <Button onClick={() => ask(true)} size="small">
            Pull request…
          </Button>
        )}
        <Choices<Against>
          choose={(chosen) => compare(chosen)}
          name="Compared with"
          options={[
            ["head", "Not committed"],
            ["base", "Whole branch"],
          ]}
          value={against}
        />
      </header>
      {data ? <FileList against={against} files={data} folder={folder} id={id} /> : <Waiting>Comparing…</Waiting>}
      {error && !data && <Failure fault={error} retry={() => void refetch()} />}
      {isAsking && <PullRequestDialog close={() => ask(false)} folder={folder} id={id} />}
    </div>
  )
}

interface FileListProps {
  readonly id: string
  readonly folder: string
  readonly against: Against
  readonly files: Output<"GET /v1/sessions/{id}/git/files">
}

function FileList({ id, folder, against, files: { files, isCut } }: FileListProps): ReactElement {
  if (files.length === 0)
    return (
      <EmptyState title="Nothing has changed">
        {against === "head" ? "Everything is committed." : "The branch is where the remote's main branch is."}
      </EmptyState>
    )
  const sum = (key: "additions" | "deletions"): number => files.reduce((total, file) => total + (file[key] ?? 0), 0)
  return (
    <div className="changed-files">
      <p className="soft tiny">
        {files.length} {files.length === 1 ? "file" : "files"} <b className="added">+{sum("additions")}</b>{" "}
        <b className="gone">−{sum("deletions")}</b>
        {isCut && " · there are more"}
      </p>
      {files.map((file) => (
        <ChangedFile
          against={against}
          file={file}
          folder={folder}
          id={id}
          isOpen={files.length === 1}
          key={`${against} ${file.path}`}
        />
      ))}
    </div>
  )
}
