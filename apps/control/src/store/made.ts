import { numberOf, textOf, type Sql } from "./sql.ts"

export interface MadeRow {
  /** What was asked, as a hash. */
  readonly asked: string
  /** Sealed; empty while it is being made. */
  readonly answer: string
  readonly at: number
}

/** Whose key it is. */
export interface MadeKey {
  readonly userId: string
  /** As a hash: what a caller calls its requests is its own business. */
  readonly key: string
}

/** Answers of what was made with a key, so that asking again makes nothing more. */
export class Made {
  readonly #sql: Sql
  readonly #maker: string

  /** `maker`: who makes what is begun here, the same after a restart. */
  constructor(sql: Sql, maker: string) {
    this.#sql = sql
    this.#maker = maker
  }

  /** Of two that ask at once with one key, one gets true. What is as old as `before` is forgotten. */
  async claim({ userId, key }: MadeKey, asked: string, times: { now: number; before: number }): Promise<boolean> {
    const sql = `INSERT INTO made (user_id, key, asked, answer, at, maker) VALUES (?, ?, ?, '', ?, ?) ON CONFLICT DO NOTHING`
    const [, claimed] = await this.#sql.write(
      { sql: "DELETE FROM made WHERE at <= ?", values: [times.before] },
      { sql, values: [userId, key, asked, times.now, this.#maker] },
    )
    return claimed === 1
  }

  async get({ userId, key }: MadeKey): Promise<MadeRow | undefined> {
    const [row] = await this.#sql.all("SELECT * FROM made WHERE user_id = ? AND key = ?", [userId, key])
    return row && { asked: textOf(row, "asked"), answer: textOf(row, "answer"), at: numberOf(row, "at") }
  }

  async keep({ userId, key }: MadeKey, answer: string): Promise<void> {
    const sql = "UPDATE made SET answer = ? WHERE user_id = ? AND key = ?"
    await this.#sql.write({ sql, values: [answer, userId, key] })
  }

  async forget({ userId, key }: MadeKey): Promise<void> {
    await this.#sql.write({ sql: "DELETE FROM made WHERE user_id = ? AND key = ?", values: [userId, key] })
  }

  /** What was begun here and has not come to an end. */
  async forgetUnfinished(): Promise<void> {
    await this.#sql.write({ sql: "DELETE FROM made WHERE answer = '' AND maker = ?", values: [this.#maker] })
  }
}
