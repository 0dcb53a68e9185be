import type { Database } from "@warren/base/sqlite/database.ts"
import type { Migration } from "@warren/base/sqlite/migrations.ts"
import type { Bindable, Row } from "@warren/base/sqlite/value.ts"
import type { SnapshotId } from "@warren/drivers/sandbox-spec.ts"
import type { Plan } from "./plan.ts"
import type { SessionId } from "./session-record.ts"

export const snapshotMigrations: readonly Migration[] = [
  {
    name: "snapshots",
    sql: `CREATE TABLE snapshots (
        number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, session TEXT NOT NULL, state TEXT NOT NULL, record TEXT NOT NULL) STRICT;
      CREATE INDEX snapshots_by_session ON snapshots (session, number);`,
  },
]

/** A snapshot as it is written down. It outlives its session. */
export interface SnapshotRecord {
  readonly id: SnapshotId
  readonly session: SessionId
  readonly name?: string | undefined
  readonly plan: Plan
  /** The image by the name its session asked for. */
  readonly image: string
  readonly createdAt: number
  readonly isAutomatic: boolean
  readonly parent?: SnapshotId | undefined
}

/** `making` and `removing` are written down first; what is found in them after a crash is taken away. */
type SnapshotState = "making" | "ready" | "removing"

export class SnapshotStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  add(record: SnapshotRecord): void {
    this.#database.run("INSERT INTO snapshots (id, session, state, record) VALUES (?, ?, 'making', ?)", [
      record.id,
      record.session,
      JSON.stringify(record),
    ])
  }

  set(id: SnapshotId, state: SnapshotState): void {
    this.#database.run("UPDATE snapshots SET state = ? WHERE id = ?", [state, id])
  }

  delete(id: SnapshotId): void {
    this.#database.run("DELETE FROM snapshots WHERE id = ?", [id])
  }

  find(id: string): SnapshotRecord | undefined {
    return this.#database.get("SELECT record FROM snapshots WHERE id = ? AND state = 'ready'", [id], recordOf)
  }

  ids(): SnapshotId[] {
    return this.#database.all("SELECT id FROM snapshots", [], (row) => String(row["id"]) as SnapshotId)
  }

  /** What a crash left half made or half gone. */
  unfinished(): SnapshotRecord[] {
    return this.#database.all("SELECT record FROM snapshots WHERE state <> 'ready'", [], recordOf)
  }

  has(id: SnapshotId): boolean {
    return this.#database.get("SELECT 1 AS one FROM snapshots WHERE id = ?", [id], () => true) ?? false
  }

  /** The newest first. */
  list(options: { session?: string | undefined; before?: number | undefined; limit: number }) {
    const where = ["state = 'ready'"]
    const values: Bindable[] = []
    if (options.session !== undefined) {
      where.push("session = ?")
      values.push(options.session)
    }
    if (options.before !== undefined) {
      where.push("number < ?")
      values.push(options.before)
    }
    return this.#database.all(
      `SELECT number, record FROM snapshots WHERE ${where.join(" AND ")} ORDER BY number DESC LIMIT ?`,
      [...values, options.limit],
      (row) => ({ number: Number(row["number"]), record: recordOf(row) }),
    )
  }
}

function recordOf(row: Row): SnapshotRecord {
  return JSON.parse(String(row["record"])) as SnapshotRecord
}
