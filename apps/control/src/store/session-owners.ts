import { textOf, type Sql } from "./sql.ts"

/** Of one user; what was seen longest ago goes first. */
const perUserMax = 20_000

/**
 * Whose a session is, so that what comes for it without saying who asks finds its way. Who says first that it is theirs has it: a
 * session's id is known to nobody else at that time, and a runner is its user's own program, which could say anything later.
 */
export class SessionOwners {
  readonly #sql: Sql

  constructor(sql: Sql) {
    this.#sql = sql
  }

  async note(owners: ReadonlyMap<string, string>, now: number): Promise<void> {
    const sql = `INSERT INTO session_owners (session, user_id, seen_at) SELECT ?, id, ? FROM users WHERE id = ?
      ON CONFLICT (session) DO NOTHING`
    await this.#sql.write(...[...owners].map(([session, user]) => ({ sql, values: [session, now, user] })))
  }

  /** The id of the user, if anybody has said. */
  async of(session: string): Promise<string | undefined> {
    const [row] = await this.#sql.all("SELECT user_id FROM session_owners WHERE session = ?", [session])
    return row && textOf(row, "user_id")
  }

  /** Forgets the oldest of users who have too many. */
  async trim(users: Iterable<string>): Promise<void> {
    const sql = `DELETE FROM session_owners WHERE user_id = ? AND session NOT IN (
      SELECT session FROM session_owners WHERE user_id = ? ORDER BY seen_at DESC, session LIMIT ?)`
    await this.#sql.write(...[...users].map((user) => ({ sql, values: [user, user, perUserMax] })))
  }
}
