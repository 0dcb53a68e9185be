import type { SessionInfo } from "@warren/sdk/session.ts"
import { useState, type ReactElement } from "react"
import { useLocation } from "wouter"
import { usePages } from "../../data/pages.ts"
import { useAsk } from "../../data/query.ts"
import { putSession } from "../../data/sessions.ts"
import { List, More } from "../../pages/page.tsx"
import { Button } from "../../parts/button.tsx"
import { Confirm } from "../../parts/confirm.tsx"
import { toast } from "../../parts/toast.tsx"
import { When } from "../../parts/when.tsx"
import { isAsleep } from "../asleep.tsx"
import { branches, type Branch } from "./snapshot-tree.ts"

const stepPx = 20

/** Its files as they were, as a tree: to go back to, or to go on from in another session. */
export function SnapshotsSection({ session }: { readonly session: SessionInfo }): ReactElement {
  const pages = usePages("GET /v1/snapshots", { session: session.id })
  const make = useAsk("POST /v1/sessions/{session}/snapshots", { renews: ["GET /v1/snapshots"] })
  return (
    <section className="section">
      <header>
        <h2>Snapshots</h2>
        <Button
          disabled={isAsleep(session)}
          icon="camera"
          isBusy={make.isPending}
          onClick={() => make.mutate({ session: session.id })}
          size="small"
        >
          Take one
        </Button>
      </header>
      <List
        {...pages}
        empty={<p className="soft small">None yet. Take one before something risky: going back takes a moment.</p>}
      >
        {(items) => (
          <div className="snapshots">
            {branches(items).map((branch) => (
              <SnapshotLine branch={branch} key={branch.snapshot.id} session={session} />
            ))}
          </div>
        )}
      </List>
      <More pages={pages} />
    </section>
  )
}

interface SnapshotLineProps {
  readonly branch: Branch
  readonly session: SessionInfo
}

function SnapshotLine({ branch: { snapshot, depth }, session }: SnapshotLineProps): ReactElement {
  const { id, name, createdAt, isAutomatic } = snapshot
  const [asked, ask] = useState<"rollback" | "delete">()
  const [, go] = useLocation()
  const shown = name ?? id
  const close = (): void => ask(undefined)
  const fork = useAsk("POST /v1/sessions", {
    done: (made) => {
      putSession(made.id, made)
      go(`/s/${made.name}/files`)
    },
  })
  const rollback = useAsk("POST /v1/sessions/{id}/rollback", {
    renews: ["GET /v1/snapshots", "GET /v1/sessions/{session}/files"],
    done: (changed) => {
      putSession(session.id, changed)
      toast.say("Its files are as they were")
      close()
    },
  })
  const remove = useAsk("DELETE /v1/snapshots/{id}", { renews: ["GET /v1/snapshots"], done: close })
  return (
    <div className="snapshot" style={{ paddingLeft: depth * stepPx }}>
      <span className="snapshot-dot" data-automatic={isAutomatic || undefined} />
      <span className="cut spread">
        {name ?? <code>{id}</code>}{" "}
        <span className="soft tiny">
          <When at={createdAt} />
          {isAutomatic && " · by itself"}
        </span>
      </span>
      <Button
        icon="fork"
        isBusy={fork.isPending}
        kind="quiet"
        onClick={() => fork.mutate({ from: id, network: session.network })}
        size="small"
      >
        Fork
      </Button>
      <Button icon="refresh" kind="quiet" onClick={() => ask("rollback")} size="small">
        Go back
      </Button>
      <Button aria-label={`Delete ${shown}`} icon="trash" kind="quiet" onClick={() => ask("delete")} size="small" />
      {asked === "rollback" && (
        <Confirm
          act="Go back"
          close={close}
          isBusy={rollback.isPending}
          title="Go back to this snapshot?"
          yes={() => rollback.mutate({ id: session.id, snapshot: id })}
        >
          What was written since is lost unless it is in a snapshot or in the workspace, and programs that run end.
        </Confirm>
      )}
      {asked === "delete" && (
        <Confirm
          act="Delete it"
          close={close}
          isBusy={remove.isPending}
          title="Delete this snapshot?"
          yes={() => remove.mutate({ id })}
        >
          Sessions that started from it go on.
        </Confirm>
      )}
    </div>
  )
}
