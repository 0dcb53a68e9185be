import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import { isId, newId } from "@warren/base/id.ts"
import type { Database } from "@warren/base/sqlite/database.ts"
import type { Migration } from "@warren/base/sqlite/migrations.ts"
import type { Row } from "@warren/base/sqlite/value.ts"
import {
  canonicalDestination,
  digestOf,
  isScope,
  newToken,
  type GrantedLease,
  type Lease,
  type LeaseId,
  type LeaseScope,
} from "./lease.ts"

/** For whoever opens the runner's database to put among its own. */
export const leaseMigrations: readonly Migration[] = [
  {
    name: "leases",
    sql: `CREATE TABLE leases (
      id TEXT PRIMARY KEY, digest BLOB NOT NULL UNIQUE, session TEXT NOT NULL, scope TEXT NOT NULL,
      destination TEXT NOT NULL, created_at INTEGER NOT NULL, expires_at INTEGER NOT NULL, revoked_at INTEGER) STRICT;
      CREATE INDEX leases_by_session ON leases (session);`,
  },
]

interface Grant {
  readonly session: string
  readonly scope: LeaseScope
  readonly destination: string
  readonly ttlMs: number
}

const ttlMsMax = 30 * 24 * 3_600_000
const perSessionMax = 100
const columns = "id, session, scope, destination, created_at, expires_at, revoked_at"

/** Who may use which key where. Only hashes of the secrets are kept, and what ended stays until it is pruned. */
export class Leases {
  readonly #database: Database
  readonly #clock: Clock
  readonly #watchers = new Set<(revoked: LeaseId) => void>()

  constructor(database: Database, clock: Clock) {
    this.#database = database
    this.#clock = clock
  }

  /** Tells of every lease that is revoked from now on, at once. Ends with what it returns. */
  watch(watcher: (revoked: LeaseId) => void): Disposable {
    this.#watchers.add(watcher)
    return { [Symbol.dispose]: () => void this.#watchers.delete(watcher) }
  }

  /** The only moment at which the token can be read. */
  grant({ session, scope, destination, ttlMs }: Grant): GrantedLease {
    if (!(ttlMs > 0 && ttlMs <= ttlMsMax)) throw new Fault("invalid", `a lease cannot last ${ttlMs} ms`)
    const now = this.#clock.now()
    const lease: Lease = {
      id: newId("lea"),
      session,
      scope,
      destination: canonicalDestination(destination),
      createdAt: now,
      expiresAt: now + ttlMs,
      revokedAt: undefined,
    }
    const token = newToken()
    this.#database.transaction(() => {
      if (this.list(session).length >= perSessionMax) {
        throw new Fault("limit", `a session cannot have more than ${perSessionMax} leases`, { hint: "revoke some" })
      }
      this.#database.run(`INSERT INTO leases (digest, ${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, NULL)`, [
        digestOf(token),
        lease.id,
        session,
        scope,
        lease.destination,
        lease.createdAt,
        lease.expiresAt,
      ])
    })
    return { ...lease, token }
  }

  /** Whatever is known of this token: also when it has expired or was revoked. */
  find(token: string): Lease | undefined {
    return this.#database.get(`SELECT ${columns} FROM leases WHERE digest = ?`, [digestOf(token)], leaseOf)
  }

  /** Those of a session that are in force. */
  list(session: string): Lease[] {
    const sql = `SELECT ${columns} FROM leases WHERE session = ? AND revoked_at IS NULL AND expires_at > ? ORDER BY created_at`
    return this.#database.all(sql, [session, this.#clock.now()], leaseOf)
  }

  /** Says whether there was one to revoke. */
  revoke(id: LeaseId): boolean {
    const sql = "UPDATE leases SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL"
    const isRevoked = this.#database.run(sql, [this.#clock.now(), id]) > 0
    if (isRevoked) for (const watcher of this.#watchers) watcher(id)
    return isRevoked
  }

  /** At the end of a session. Says how many there were. */
  revokeSession(session: string): number {
    const inForce = this.list(session)
    const sql = "UPDATE leases SET revoked_at = ? WHERE session = ? AND revoked_at IS NULL"
    const count = this.#database.run(sql, [this.#clock.now(), session])
    for (const { id } of inForce) for (const watcher of this.#watchers) watcher(id)
    return count
  }

  /** Forgets what ended before then. */
  prune(before: number): number {
    return this.#database.run("DELETE FROM leases WHERE coalesce(revoked_at, expires_at) < ?", [before])
  }
}

function leaseOf(row: Row): Lease {
  const { id, scope } = row
  if (!isId("lea", id) || !isScope(scope)) throw new Fault("internal", "a lease in the database cannot be read")
  return {
    id,
    session: String(row["session"]),
    scope,
    destination: String(row["destination"]),
    createdAt: Number(row["created_at"]),
    expiresAt: Number(row["expires_at"]),
    revokedAt: row["revoked_at"] === null ? undefined : Number(row["revoked_at"]),
  }
}
