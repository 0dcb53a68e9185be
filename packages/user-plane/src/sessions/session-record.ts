import type { Id } from "@warren/base/id.ts"
import type { SandboxId, SnapshotId } from "@warren/drivers/sandbox-spec.ts"
import { Session, type EndReason } from "@warren/protocol/user-plane/session.ts"
import type { z } from "zod"
import type { State } from "./moves.ts"
import type { Plan } from "./plan.ts"
import type { Reach } from "./way-out.ts"

export type SessionId = Id<"ses">
export type Reason = z.output<typeof EndReason>
export type SessionData = z.output<typeof Session>

/** A session as it is written down. */
export interface SessionRecord {
  readonly id: SessionId
  readonly name: string
  readonly key?: string | undefined
  readonly labels: Readonly<Record<string, string>>
  readonly state: State
  readonly reason?: Reason | undefined
  readonly detail?: string | undefined
  /** Where its files are; absent when they have been taken away. */
  readonly sandbox?: SandboxId | undefined
  /** It was asked to be deleted: whatever is left of it goes, also after a crash. */
  readonly isLeaving?: true | undefined
  readonly plan: Plan
  /** The image by the name it was asked for. */
  readonly image: string
  /** What its proxy lets it reach. */
  readonly reach: Reach
  readonly env: Readonly<Record<string, string>>
  readonly secrets: readonly string[]
  readonly keys: SessionData["keys"]
  readonly ttlMs?: number | undefined
  readonly lifeMs?: number | undefined
  readonly lifeAction?: SessionData["lifeAction"]
  readonly idle?: SessionData["idle"]
  readonly snapshots?: SessionData["snapshots"]
  readonly createdAt: number
  readonly usedAt: number
  readonly parent?: SessionId | undefined
  /** The snapshot its files were last taken from. */
  readonly base?: SnapshotId | undefined
  readonly acquireSource: "pool" | "cold"
  readonly acquireMs: number
}

/** A session as others see it. */
export function shown(record: SessionRecord): SessionData {
  const { plan, reach, env, createdAt, usedAt, sandbox: _, base: __, isLeaving: ___, ...same } = record
  const expiresAt = Math.min(
    record.ttlMs === undefined ? Infinity : usedAt + record.ttlMs,
    record.lifeMs === undefined ? Infinity : createdAt + record.lifeMs,
  )
  return {
    ...same,
    labels: { ...record.labels },
    secrets: [...record.secrets],
    driver: plan.driver,
    profile: plan.profile,
    limits: plan.limits,
    network: plan.network === "proxy" ? { mode: "proxy", ...reach, allow: [...reach.allow] } : { mode: plan.network },
    ...(plan.workspace === undefined ? {} : { workspace: plan.workspace }),
    env: Object.keys(env),
    createdAt: new Date(createdAt).toISOString(),
    usedAt: new Date(usedAt).toISOString(),
    ...(Number.isFinite(expiresAt) ? { expiresAt: new Date(expiresAt).toISOString() } : {}),
  }
}
