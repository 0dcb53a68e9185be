import type { Clock } from "@warren/base/clock.ts"
import type { Database } from "@warren/base/sqlite/database.ts"
import type { Migration } from "@warren/base/sqlite/migrations.ts"

export const madeLimits = {
  /** How long an answer is given again. */
  keptMs: 24 * 3600_000,
  /** Answers kept at once; the oldest go. */
  answersMax: 10_000,
} as const

export const madeMigrations: readonly Migration[] = [
  {
    name: "made",
    sql: `CREATE TABLE made (
        id INTEGER PRIMARY KEY AUTOINCREMENT, caller TEXT NOT NULL, key TEXT NOT NULL, asked TEXT NOT NULL, answer TEXT NOT NULL,
        at INTEGER NOT NULL, UNIQUE (caller, key)) STRICT;
      CREATE INDEX made_by_time ON made (at);`,
  },
]

export interface MadeRow {
  /** What was asked, as a hash. */
  readonly asked: string
  readonly answer: string
}

/** Answers of what was made with a key, so that asking again makes nothing more. */
export class MadeStore {
  readonly #database: Database
  readonly #clock: Clock

  constructor(database: Database, clock: Clock) {
    this.#database = database
    this.#clock = clock
  }

  get(caller: string, key: string): MadeRow | undefined {
    const since = this.#clock.now() - madeLimits.keptMs
    return this.#database.get(
      "SELECT asked, answer FROM made WHERE caller = ? AND key = ? AND at > ?",
      [caller, key, since],
      (row) => ({ asked: String(row["asked"]), answer: String(row["answer"]) }),
    )
  }

  put(caller: string, key: string, { asked, answer }: MadeRow): void {
    const now = this.#clock.now()
    this.#database.transaction(() => {
      this.#database.run("DELETE FROM made WHERE at <= ? OR (caller = ? AND key = ?)", [
        now - madeLimits.keptMs,
        caller,
        key,
      ])
      const row = [caller, key, asked, answer, now]
      this.#database.run("INSERT INTO made (caller, key, asked, answer, at) VALUES (?, ?, ?, ?, ?)", row)
      this.#database.run("DELETE FROM made WHERE id <= (SELECT max(id) FROM made) - ?", [madeLimits.answersMax])
    }, "kill")
  }
}
