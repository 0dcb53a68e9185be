import type { Lease, LeaseScope } from "./lease.ts"

export type Refusal =
  | "no-lease"
  | "unknown"
  | "other-session"
  | "expired"
  | "revoked"
  | "other-scope"
  | "other-destination"

interface Asked {
  /** Whose socket it came through. */
  readonly session: string
  readonly scopes: readonly LeaseScope[]
  /** A host, or a repository on it. */
  readonly destination: string
  readonly now: number
}

/** Why a lease does not allow this; undefined when it does. */
export function refusalOf(lease: Lease | undefined, asked: Asked): Refusal | undefined {
  if (!lease) return "unknown"
  // First of all: another session's lease says nothing about itself here.
  if (lease.session !== asked.session) return "other-session"
  if (lease.revokedAt !== undefined) return "revoked"
  if (lease.expiresAt <= asked.now) return "expired"
  if (!asked.scopes.includes(lease.scope)) return "other-scope"
  const isThere = asked.destination === lease.destination || asked.destination.startsWith(`${lease.destination}/`)
  return isThere ? undefined : "other-destination"
}
