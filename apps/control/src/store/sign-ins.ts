import { failpoint } from "@warren/base/failpoint.ts"
import { numberOf, textOf, type Sql, type SqlRow } from "./sql.ts"
import { bearerColumns, bearerOf, type Bearer } from "./tokens.ts"

export type SignInMethod = "password" | "link" | "oidc"

export interface SignInRow {
  readonly id: string
  readonly userId: string
  readonly hash: string
  readonly method: SignInMethod
  readonly address: string
  readonly createdAt: number
  readonly usedAt: number
  readonly expiresAt: number
}

/** Browsers that are signed in, by the hash of their cookie. */
export class SignIns {
  readonly #sql: Sql

  constructor(sql: Sql) {
    this.#sql = sql
  }

  /** The oldest of a user go when there are too many, and with them everybody's that are over. */
  async add(row: SignInRow, perUserMax: number): Promise<void> {
    const add = `INSERT INTO sign_ins (id, user_id, hash, method, address, created_at, used_at, expires_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)`
    const { id, userId, hash, method, address, createdAt, usedAt, expiresAt } = row
    const trim = `DELETE FROM sign_ins WHERE user_id = ? AND id NOT IN (
      SELECT id FROM sign_ins WHERE user_id = ? ORDER BY created_at DESC, id DESC LIMIT ?)`
    await this.#sql.write(
      { sql: "DELETE FROM sign_ins WHERE expires_at <= ?", values: [createdAt] },
      { sql: add, values: [id, userId, hash, method, address, createdAt, usedAt, expiresAt] },
      { sql: trim, values: [userId, userId, perUserMax] },
    )
    failpoint("sign-in/added")
  }

  async byHash(hash: string): Promise<{ signIn: SignInRow; bearer: Bearer } | undefined> {
    const sql = `SELECT sign_ins.*, ${bearerColumns} FROM sign_ins JOIN users ON users.id = sign_ins.user_id
      LEFT JOIN quotas ON quotas.user_id = users.id WHERE sign_ins.hash = ?`
    const [row] = await this.#sql.all(sql, [hash])
    return row && { signIn: signInOf(row), bearer: bearerOf(row) }
  }

  async byId(id: string): Promise<SignInRow | undefined> {
    const [row] = await this.#sql.all("SELECT * FROM sign_ins WHERE id = ?", [id])
    return row && signInOf(row)
  }

  async listOf(userId: string): Promise<SignInRow[]> {
    const rows = await this.#sql.all("SELECT * FROM sign_ins WHERE user_id = ? ORDER BY created_at, id", [userId])
    return rows.map(signInOf)
  }

  async revoke(userId: string, id: string): Promise<boolean> {
    const [deleted] = await this.#sql.write({
      sql: "DELETE FROM sign_ins WHERE id = ? AND user_id = ?",
      values: [id, userId],
    })
    return deleted === 1
  }

  /** All of a user's but one. */
  async revokeOthers(userId: string, except: string): Promise<void> {
    await this.#sql.write({ sql: "DELETE FROM sign_ins WHERE user_id = ? AND id <> ?", values: [userId, except] })
  }

  async used(times: ReadonlyMap<string, number>): Promise<void> {
    const sql = "UPDATE sign_ins SET used_at = ? WHERE id = ?"
    await this.#sql.write(...[...times].map(([id, at]) => ({ sql, values: [at, id] })))
  }
}

function signInOf(row: SqlRow): SignInRow {
  const method = textOf(row, "method")
  return {
    id: textOf(row, "id"),
    userId: textOf(row, "user_id"),
    hash: textOf(row, "hash"),
    method: method === "link" || method === "oidc" ? method : "password",
    address: textOf(row, "address"),
    createdAt: numberOf(row, "created_at"),
    usedAt: numberOf(row, "used_at"),
    expiresAt: numberOf(row, "expires_at"),
  }
}
