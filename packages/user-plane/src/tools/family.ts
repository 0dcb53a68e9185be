import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import type { Database } from "@warren/base/sqlite/database.ts"
import type { Migration } from "@warren/base/sqlite/migrations.ts"
import type { Row } from "@warren/base/sqlite/value.ts"
import { toolLimits } from "@warren/protocol/hub/tools.ts"

export const familyMigrations: readonly Migration[] = [
  {
    name: "session families",
    sql: `CREATE TABLE session_children (
        child TEXT PRIMARY KEY, parent TEXT NOT NULL, depth INTEGER NOT NULL, is_complete INTEGER NOT NULL,
        created_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
      CREATE INDEX session_children_by_parent ON session_children (parent);
      CREATE TABLE session_letters (
        n INTEGER PRIMARY KEY AUTOINCREMENT, recipient TEXT NOT NULL, sender TEXT NOT NULL, text TEXT NOT NULL,
        created_at INTEGER NOT NULL) STRICT;
      CREATE INDEX session_letters_by_recipient ON session_letters (recipient, n);`,
  },
]

export interface Kinship {
  readonly child: string
  readonly parent: string
  readonly depth: number
  readonly isComplete: boolean
}

export interface Letter {
  readonly number: number
  readonly from: string
  readonly text: string
  readonly at: string
}

/** Who started whom, and what they left for each other. */
export class Family {
  readonly #database: Database
  readonly #clock: Clock

  constructor(database: Database, clock: Clock) {
    this.#database = database
    this.#clock = clock
  }

  of(child: string): Kinship | undefined {
    return this.#database.get("SELECT * FROM session_children WHERE child = ?", [child], kinshipOf)
  }

  children(parent: string): Kinship[] {
    const sql = "SELECT * FROM session_children WHERE parent = ? ORDER BY created_at, child"
    return this.#database.all(sql, [parent], kinshipOf)
  }

  parents(): string[] {
    return this.#database.all("SELECT DISTINCT parent FROM session_children", [], (row) => String(row["parent"]))
  }

  add(parent: string, child: string): void {
    const depth = (this.of(parent)?.depth ?? 0) + 1
    if (depth > toolLimits.depthMax)
      throw new Fault("limit", `sessions start sessions only ${toolLimits.depthMax} deep`)
    const sql = "INSERT INTO session_children (child, parent, depth, is_complete, created_at) VALUES (?, ?, ?, 0, ?)"
    this.#database.run(sql, [child, parent, depth, this.#clock.now()])
  }

  complete(child: string): void {
    this.#database.run("UPDATE session_children SET is_complete = 1 WHERE child = ?", [child])
  }

  /** A session is gone: nobody is its child any more, and nobody reads its letters. */
  forget(session: string): void {
    this.#database.atomically(() => {
      this.#database.run("DELETE FROM session_children WHERE child = ? OR parent = ?", [session, session])
      this.#database.run("DELETE FROM session_letters WHERE recipient = ?", [session])
    })
  }

  /** Only so many are kept: the oldest go. */
  leave(recipient: string, sender: string, text: string): void {
    this.#database.atomically(() => {
      const sql = "INSERT INTO session_letters (recipient, sender, text, created_at) VALUES (?, ?, ?, ?)"
      this.#database.run(sql, [recipient, sender, text, this.#clock.now()])
      this.#database.run(
        `DELETE FROM session_letters WHERE recipient = ? AND n NOT IN
           (SELECT n FROM session_letters WHERE recipient = ? ORDER BY n DESC LIMIT ?)`,
        [recipient, recipient, toolLimits.messagesKept],
      )
    })
  }

  letters(recipient: string, after: number, limit: number): Letter[] {
    const sql = "SELECT * FROM session_letters WHERE recipient = ? AND n > ? ORDER BY n LIMIT ?"
    return this.#database.all(sql, [recipient, after, limit], letterOf)
  }
}

function kinshipOf(row: Row): Kinship {
  return {
    ...{ child: String(row["child"]), parent: String(row["parent"]), depth: Number(row["depth"]) },
    isComplete: Number(row["is_complete"]) === 1,
  }
}

function letterOf(row: Row): Letter {
  return {
    ...{ number: Number(row["n"]), from: String(row["sender"]), text: String(row["text"]) },
    at: new Date(Number(row["created_at"])).toISOString(),
  }
}
