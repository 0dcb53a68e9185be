import { failpoint } from "@warren/base/failpoint.ts"
import { maybeNumber, maybeText, numberOf, textOf, type Sql, type SqlRow } from "./sql.ts"
import { quotaFrom, userOf, type UserRow } from "./users.ts"

export interface TokenRow {
  readonly id: string
  readonly userId: string
  readonly hash: string
  readonly label: string
  /** Separated by spaces. */
  readonly scopes: string
  readonly namePrefix: string | undefined
  readonly sessionsMax: number | undefined
  readonly requestsPerMinute: number | undefined
  readonly createdAt: number
  readonly expiresAt: number | undefined
  readonly usedAt: number | undefined
}

/** Somebody a token or a sign-in was found for, with what they may use. */
export interface Bearer {
  readonly user: UserRow
  readonly quota: { readonly sessionsMax?: number; readonly requestsPerMinute?: number }
}

/** The user's columns and their quota's beside those of what was looked for. */
export const bearerColumns = `users.id AS u_id, users.name AS u_name, users.role AS u_role, users.state AS u_state,
  users.created_at AS u_created_at, quotas.sessions_max AS q_sessions_max,
  quotas.requests_per_minute AS q_requests_per_minute`

export function bearerOf(row: SqlRow): Bearer {
  const part = (prefix: string): SqlRow =>
    Object.fromEntries(
      Object.entries(row).flatMap(([name, value]) =>
        name.startsWith(prefix) ? [[name.slice(prefix.length), value] as const] : [],
      ),
    )
  return { user: userOf(part("u_")), quota: quotaFrom(part("q_")) }
}

/** Tokens, by the hash of what was handed out. */
export class Tokens {
  readonly #sql: Sql

  constructor(sql: Sql) {
    this.#sql = sql
  }

  /** `limit` when the user has as many already. */
  async add(token: TokenRow, tokensMax: number): Promise<boolean> {
    const sql = `INSERT INTO tokens (id, user_id, hash, label, scopes, name_prefix, sessions_max, requests_per_minute,
      created_at, expires_at) SELECT ?, id, ?, ?, ?, ?, ?, ?, ?, ? FROM users
      WHERE id = ? AND (SELECT count(*) FROM tokens AS mine WHERE mine.user_id = users.id) < ?`
    const { id, userId, hash, label, scopes, createdAt } = token
    const limits = [token.namePrefix ?? null, token.sessionsMax ?? null, token.requestsPerMinute ?? null]
    const values = [id, hash, label, scopes, ...limits, createdAt, token.expiresAt ?? null, userId, tokensMax]
    const [added] = await this.#sql.write({ sql, values })
    failpoint("token/added")
    return added === 1
  }

  async byHash(hash: string): Promise<{ token: TokenRow; bearer: Bearer } | undefined> {
    const sql = `SELECT tokens.*, ${bearerColumns} FROM tokens JOIN users ON users.id = tokens.user_id
      LEFT JOIN quotas ON quotas.user_id = users.id WHERE tokens.hash = ?`
    const [row] = await this.#sql.all(sql, [hash])
    return row && { token: tokenOf(row), bearer: bearerOf(row) }
  }

  async byId(id: string): Promise<TokenRow | undefined> {
    const [row] = await this.#sql.all("SELECT * FROM tokens WHERE id = ?", [id])
    return row && tokenOf(row)
  }

  async listOf(userId: string): Promise<TokenRow[]> {
    const rows = await this.#sql.all("SELECT * FROM tokens WHERE user_id = ? ORDER BY created_at, id", [userId])
    return rows.map(tokenOf)
  }

  async revoke(userId: string, id: string): Promise<boolean> {
    const sql = "DELETE FROM tokens WHERE id = ? AND user_id = ?"
    const [deleted] = await this.#sql.write({ sql, values: [id, userId] })
    return deleted === 1
  }

  async used(times: ReadonlyMap<string, number>): Promise<void> {
    const sql = "UPDATE tokens SET used_at = ? WHERE id = ?"
    await this.#sql.write(...[...times].map(([id, at]) => ({ sql, values: [at, id] })))
  }
}

function tokenOf(row: SqlRow): TokenRow {
  return {
    id: textOf(row, "id"),
    userId: textOf(row, "user_id"),
    hash: textOf(row, "hash"),
    label: textOf(row, "label"),
    scopes: textOf(row, "scopes"),
    namePrefix: maybeText(row, "name_prefix"),
    sessionsMax: maybeNumber(row, "sessions_max"),
    requestsPerMinute: maybeNumber(row, "requests_per_minute"),
    createdAt: numberOf(row, "created_at"),
    expiresAt: maybeNumber(row, "expires_at"),
    usedAt: maybeNumber(row, "used_at"),
  }
}
