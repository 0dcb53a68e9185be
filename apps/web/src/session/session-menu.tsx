import type { SessionInfo } from "@warren/sdk/session.ts"
import { useState, type ReactElement } from "react"
import { useLocation } from "wouter"
import { useAsk } from "../data/query.ts"
import { putSession } from "../data/sessions.ts"
import { Confirm } from "../parts/confirm.tsx"
import { Menu, MenuItem } from "../parts/menu.tsx"
import { ForkDialog } from "./fork-dialog.tsx"
import { RenameDialog } from "./rename-dialog.tsx"

const awake: ReadonlySet<SessionInfo["state"]> = new Set(["running", "paused"] as const)
const asleep: ReadonlySet<SessionInfo["state"]> = new Set(["hibernated", "stopped", "failed"] as const)

/** What can be done with a session. What cannot be done now is not offered. */
export function SessionMenu({ session }: { readonly session: SessionInfo }): ReactElement {
  const { id, state } = session
  const [dialog, open] = useState<"fork" | "rename" | "delete">()
  const [, go] = useLocation()
  const told = { done: (changed: SessionInfo) => putSession(id, changed) }
  const pause = useAsk("POST /v1/sessions/{id}/pause", told)
  const resume = useAsk("POST /v1/sessions/{id}/resume", told)
  const hibernate = useAsk("POST /v1/sessions/{id}/hibernate", told)
  const restore = useAsk("POST /v1/sessions/{id}/restore", told)
  const stop = useAsk("POST /v1/sessions/{id}/stop", told)
  const remove = useAsk("DELETE /v1/sessions/{id}", {
    done: () => {
      putSession(id, undefined)
      go("/")
    },
  })
  const close = (): void => open(undefined)
  return (
    <>
      <Menu name="Actions">
        {asleep.has(state) && (
          <MenuItem act={() => restore.mutate({ id })} icon="play">
            Wake
          </MenuItem>
        )}
        {state === "paused" && (
          <MenuItem act={() => resume.mutate({ id })} icon="play">
            Resume
          </MenuItem>
        )}
        <MenuItem act={() => open("fork")} icon="fork">
          Fork…
        </MenuItem>
        {state === "running" && (
          <MenuItem act={() => pause.mutate({ id })} icon="pause">
            Pause
          </MenuItem>
        )}
        {awake.has(state) && (
          <MenuItem act={() => hibernate.mutate({ id })} icon="moon">
            Hibernate
          </MenuItem>
        )}
        {(awake.has(state) || state === "hibernated") && (
          <MenuItem act={() => stop.mutate({ id })} icon="stop">
            Stop
          </MenuItem>
        )}
        <MenuItem act={() => open("rename")} icon="edit">
          Rename…
        </MenuItem>
        <hr />
        <MenuItem act={() => open("delete")} icon="trash" isDanger>
          Delete…
        </MenuItem>
      </Menu>
      {dialog === "fork" && <ForkDialog close={close} session={session} />}
      {dialog === "rename" && <RenameDialog close={close} session={session} />}
      {dialog === "delete" && (
        <Confirm
          act="Delete it"
          close={close}
          isBusy={remove.isPending}
          title={`Delete ${session.name}?`}
          yes={() => remove.mutate({ id })}
        >
          Its programs end, and its files, snapshots and tunnels go.
          {session.workspace ? ` The workspace ${session.workspace} stays.` : ""} What was said stays to be read.
        </Confirm>
      )}
    </>
  )
}
