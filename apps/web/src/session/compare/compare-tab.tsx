import type { SessionInfo } from "@warren/sdk/session.ts"
import { useState, type ReactElement } from "react"
import { useLocation, useSearchParams } from "wouter"
import { useSessions } from "../../data/sessions.ts"
import { Button } from "../../parts/button.tsx"
import { Choices } from "../../parts/choices.tsx"
import { EmptyState } from "../../parts/empty-state.tsx"
import { ForkDialog } from "../fork-dialog.tsx"
import type { TabProps } from "../tabs.ts"
import { ComparedFiles } from "./compared-files.tsx"
import { Conversations } from "./conversations.tsx"
import { relativesOf, type Relative } from "./relatives.ts"
import "../../style/chat.css"
import "../../style/changes.css"
import "../../style/compare.css"

type What = "files" | "said"

/** This session beside another: what differs in their files, and what was said in each. */
export default function CompareTab({ session }: TabProps): ReactElement {
  const all = useSessions() ?? []
  const [search] = useSearchParams()
  const relatives = relativesOf(session, all)
  const asked = search.get("with")
  const chosen = relatives.find(({ session: { id, name } }) => id === asked || name === asked) ?? relatives[0]
  if (!chosen) return <Alone session={session} />
  return <Compared key={chosen.session.id} other={chosen.session} relatives={relatives} session={session} />
}

interface ComparedProps {
  readonly session: SessionInfo
  readonly other: SessionInfo
  readonly relatives: readonly Relative[]
}

function Compared({ session, other, relatives }: ComparedProps): ReactElement {
  const [what, show] = useState<What>("files")
  const [, go] = useLocation()
  const choose = (name: string): void => go(`/s/${session.name}/compare?with=${encodeURIComponent(name)}`)
  return (
    <div className="changes">
      <header>
        <span className="soft">
          <strong>{session.name}</strong> beside
        </span>
        <select
          aria-label="Compare with"
          className="input compare-with"
          onChange={({ target }) => choose(target.value)}
          value={other.name}
        >
          {relatives.map(({ session: { id, name }, kin }) => (
            <option key={id} value={name}>
              {kin ? `${name} (${kin})` : name}
            </option>
          ))}
        </select>
        <span className="spread" />
        <Choices<What>
          choose={show}
          name="What is compared"
          options={[
            ["files", "Files"],
            ["said", "Conversations"],
          ]}
          value={what}
        />
      </header>
      {what === "files" ? (
        <ComparedFiles other={other} session={session} />
      ) : (
        <Conversations other={other} session={session} />
      )}
    </div>
  )
}

function Alone({ session }: TabProps): ReactElement {
  const [isForking, fork] = useState(false)
  return (
    <>
      <EmptyState
        action={
          <Button icon="fork" kind="main" onClick={() => fork(true)}>
            Fork it…
          </Button>
        }
        title="Nothing to compare with"
      >
        There is no other session. Fork this one, try another way there, and see here what became different.
      </EmptyState>
      {isForking && <ForkDialog close={() => fork(false)} session={session} />}
    </>
  )
}
