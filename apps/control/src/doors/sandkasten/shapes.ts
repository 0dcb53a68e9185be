import type { z } from "zod"
import type { Session } from "@warren/protocol/user-plane/session.ts"

type SessionData = z.output<typeof Session>

/** What Sandkasten calls the states of a session. One that sleeps wakes when it is used, so it counts as running. */
const statuses: Readonly<Record<SessionData["state"], string>> = {
  starting: "running",
  running: "running",
  paused: "running",
  hibernating: "running",
  hibernated: "running",
  restoring: "running",
  stopping: "destroying",
  stopped: "destroyed",
  failed: "crashed",
}
const expiries: ReadonlySet<string> = new Set(["expired", "life", "idle"])

export function isExpired({ state, reason }: SessionData): boolean {
  return state === "stopped" && reason !== undefined && expiries.has(reason)
}

/** A session as its clients know one. */
export function sessionInfo(session: SessionData): object {
  const { id, image, workspace, createdAt, usedAt, expiresAt, acquireSource } = session
  return {
    ...{ id, image, status: isExpired(session) ? "expired" : statuses[session.state], cwd: "/workspace" },
    acquire_source: acquireSource,
    ...(acquireSource === "cold" ? { acquire_detail: "pool_empty" } : {}),
    ...(workspace === undefined ? {} : { workspace_id: workspace }),
    ...{ created_at: createdAt, expires_at: expiresAt ?? createdAt, last_activity: usedAt },
  }
}
