import { Fault } from "@warren/base/fault.ts"
import type { Database } from "@warren/base/sqlite/database.ts"
import type { Migration } from "@warren/base/sqlite/migrations.ts"
import type { Bindable, Row } from "@warren/base/sqlite/value.ts"
import type { SandboxId } from "@warren/drivers/sandbox-spec.ts"
import type { State } from "./moves.ts"
import type { Plan } from "./plan.ts"
import type { SessionId, SessionRecord } from "./session-record.ts"

export const sessionMigrations: readonly Migration[] = [
  {
    name: "sessions",
    sql: `CREATE TABLE sessions (
        number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL UNIQUE, key TEXT UNIQUE,
        state TEXT NOT NULL, used_at INTEGER NOT NULL, record TEXT NOT NULL) STRICT;
      CREATE INDEX sessions_by_state ON sessions (state, number);
      CREATE TABLE session_labels (
        name TEXT NOT NULL, value TEXT NOT NULL, number INTEGER NOT NULL REFERENCES sessions (number) ON DELETE CASCADE,
        PRIMARY KEY (name, value, number)) STRICT, WITHOUT ROWID;
      CREATE INDEX session_labels_by_session ON session_labels (number);
      CREATE TABLE sandboxes (id TEXT PRIMARY KEY, owner TEXT NOT NULL, plan TEXT NOT NULL) STRICT, WITHOUT ROWID;`,
  },
]

export interface Filter {
  readonly states?: readonly State[]
  readonly label?: { readonly name: string; readonly value: string }
  /** Only those made before the session with this number. */
  readonly before?: number
  readonly limit: number
}

/** Sessions on disk, and every sandbox that may exist: written down before it is made, so that nothing can be that nobody knows of. */
export class SessionStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /**
   * All of it, or nothing. It survives a `kill -9`; after a power cut the last moments may be missing, as they are in what sandboxes
   * have written.
   */
  atomically<T>(work: () => T): T {
    return this.#database.transaction(work, "kill")
  }

  add(record: SessionRecord): void {
    this.#database.run("INSERT INTO sessions (id, name, key, state, used_at, record) VALUES (?, ?, ?, ?, ?, ?)", [
      record.id,
      record.name,
      record.key ?? null,
      record.state,
      record.usedAt,
      JSON.stringify(record),
    ])
    this.#label(record)
  }

  put(record: SessionRecord): void {
    const changed = this.#database.run(
      "UPDATE sessions SET name = ?, key = ?, state = ?, used_at = ?, record = ? WHERE id = ?",
      [record.name, record.key ?? null, record.state, record.usedAt, JSON.stringify(record), record.id],
    )
    if (changed === 0) throw new Fault("internal", "a session that is not written down cannot change")
  }

  relabel(record: SessionRecord): void {
    this.#database.run("DELETE FROM session_labels WHERE number = (SELECT number FROM sessions WHERE id = ?)", [
      record.id,
    ])
    this.#label(record)
  }

  /** Within `atomically`. */
  touch(id: SessionId, usedAt: number): void {
    this.#database.run("UPDATE sessions SET used_at = ? WHERE id = ?", [usedAt, id])
  }

  delete(id: SessionId): void {
    this.atomically(() => this.#database.run("DELETE FROM sessions WHERE id = ?", [id]))
  }

  /** By id or by name. */
  find(which: string): SessionRecord | undefined {
    return this.#database.get("SELECT record, used_at FROM sessions WHERE id = ? OR name = ?", [which, which], recordOf)
  }

  byKey(key: string): SessionRecord | undefined {
    return this.#database.get("SELECT record, used_at FROM sessions WHERE key = ?", [key], recordOf)
  }

  /** The newest first. */
  list({ states, label, before, limit }: Filter): { readonly number: number; readonly record: SessionRecord }[] {
    const where: string[] = []
    const values: Bindable[] = []
    if (label) {
      where.push("l.name = ? AND l.value = ?")
      values.push(label.name, label.value)
    }
    if (states) {
      where.push(`s.state IN (${states.map(() => "?").join(", ")})`)
      values.push(...states)
    }
    // By the table that is walked: its order is the one asked for, so a page costs a page however many there are.
    const number = label ? "l.number" : "s.number"
    if (before !== undefined) {
      where.push(`${number} < ?`)
      values.push(before)
    }
    const from = label ? "session_labels l CROSS JOIN sessions s ON s.number = l.number" : "sessions s"
    const condition = where.length > 0 ? `WHERE ${where.join(" AND ")}` : ""
    return this.#database.all(
      `SELECT s.number, s.record, s.used_at FROM ${from} ${condition} ORDER BY ${number} DESC LIMIT ?`,
      [...values, limit],
      (row) => ({ number: Number(row["number"]), record: recordOf(row) }),
    )
  }

  count(states?: readonly State[]): number {
    const condition = states ? `WHERE state IN (${states.map(() => "?").join(", ")})` : ""
    const sql = `SELECT count(*) AS n FROM sessions ${condition}`
    return this.#database.get(sql, [...(states ?? [])], (row) => Number(row["n"])) ?? 0
  }

  /** A sandbox that is about to be made. */
  noteSandbox(id: SandboxId, owner: string, plan: Plan): void {
    const values = [id, owner, JSON.stringify(plan)]
    this.atomically(() => this.#database.run("INSERT INTO sandboxes (id, owner, plan) VALUES (?, ?, ?)", values))
  }

  /** One that waited is somebody's now. Within `atomically`. */
  giveSandbox(id: SandboxId, owner: string): void {
    this.#database.run("UPDATE sandboxes SET owner = ? WHERE id = ?", [owner, id])
  }

  /** Nothing is left of it. */
  forgetSandbox(id: SandboxId): void {
    this.atomically(() => this.#database.run("DELETE FROM sandboxes WHERE id = ?", [id]))
  }

  sandboxes(): { readonly id: SandboxId; readonly owner: string; readonly plan: Plan }[] {
    return this.#database.all("SELECT id, owner, plan FROM sandboxes", [], (row) => ({
      id: String(row["id"]) as SandboxId,
      owner: String(row["owner"]),
      plan: JSON.parse(String(row["plan"])) as Plan,
    }))
  }

  #label({ id, labels }: SessionRecord): void {
    for (const [name, value] of Object.entries(labels)) {
      this.#database.run(
        "INSERT INTO session_labels (name, value, number) SELECT ?, ?, number FROM sessions WHERE id = ?",
        [name, value, id],
      )
    }
  }
}

function recordOf(row: Row): SessionRecord {
  return { ...(JSON.parse(String(row["record"])) as SessionRecord), usedAt: Number(row["used_at"]) }
}
