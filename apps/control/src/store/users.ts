import { failpoint } from "@warren/base/failpoint.ts"
import type { z } from "zod"
import type { Role } from "@warren/protocol/control/account.ts"
import type { Quota, Route } from "@warren/protocol/control/users.ts"
import { maybeNumber, maybeText, numberOf, textOf, type Sql, type SqlRow, type Write } from "./sql.ts"

export interface UserRow {
  readonly id: string
  readonly name: string
  readonly role: z.output<typeof Role>
  readonly isDisabled: boolean
  readonly createdAt: number
}

export function userOf(row: SqlRow): UserRow {
  return {
    id: textOf(row, "id"),
    name: textOf(row, "name"),
    role: textOf(row, "role") === "admin" ? "admin" : "member",
    isDisabled: textOf(row, "state") !== "active",
    createdAt: numberOf(row, "created_at"),
  }
}

/** True of everybody but the only admin there is: a Warren without one could not be managed by anybody. */
const isNotLastAdmin = `(role <> 'admin' OR state <> 'active' OR
  (SELECT count(*) FROM users AS others WHERE others.role = 'admin' AND others.state = 'active') > 1)`

/** Users with what belongs to each: how they prove who they are, what they may use, where their runner is. */
export class Users {
  readonly #sql: Sql

  constructor(sql: Sql) {
    this.#sql = sql
  }

  async add(user: UserRow): Promise<void> {
    await this.#sql.write(addUser(user))
    failpoint("user/added")
  }

  async byId(id: string): Promise<UserRow | undefined> {
    const [row] = await this.#sql.all("SELECT * FROM users WHERE id = ?", [id])
    return row && userOf(row)
  }

  async byName(name: string): Promise<UserRow | undefined> {
    const [row] = await this.#sql.all("SELECT * FROM users WHERE name = ?", [name])
    return row && userOf(row)
  }

  /** In the order of their names, after this one. */
  async list(after: string, limit: number): Promise<UserRow[]> {
    const rows = await this.#sql.all("SELECT * FROM users WHERE name > ? ORDER BY name LIMIT ?", [after, limit])
    return rows.map(userOf)
  }

  async count(): Promise<number> {
    const [row] = await this.#sql.all("SELECT count(*) AS n FROM users", [])
    return row ? numberOf(row, "n") : 0
  }

  /** `conflict` if that would leave no admin who can sign in. */
  async change(id: string, to: { readonly role: UserRow["role"]; readonly isDisabled: boolean }): Promise<void> {
    const state = to.isDisabled ? "disabled" : "active"
    const staysAdmin = to.role === "admin" && !to.isDisabled
    const sql = `UPDATE users SET role = ?, state = ? WHERE id = ? ${staysAdmin ? "" : `AND ${isNotLastAdmin}`}`
    await this.#sql.write({ sql, values: [to.role, state, id], rows: 1 })
  }

  async delete(id: string): Promise<void> {
    await this.#sql.write({ sql: `DELETE FROM users WHERE id = ? AND ${isNotLastAdmin}`, values: [id], rows: 1 })
  }

  async passwordOf(id: string): Promise<string | undefined> {
    const sql = "SELECT verifier FROM credentials WHERE user_id = ? AND kind = 'password'"
    const [row] = await this.#sql.all(sql, [id])
    return row && maybeText(row, "verifier")
  }

  async setPassword(id: string, verifier: string, now: number): Promise<void> {
    await this.#sql.write(setCredential(id, "password", { subject: "", verifier }, now))
  }

  async hasCredential(id: string): Promise<boolean> {
    return (await this.#sql.all("SELECT kind FROM credentials WHERE user_id = ? LIMIT 1", [id])).length > 0
  }

  /** Whether anybody can sign in by themselves. */
  async hasAnyCredential(): Promise<boolean> {
    return (await this.#sql.all("SELECT kind FROM credentials LIMIT 1", [])).length > 0
  }

  /** Whom an identity provider's subject (hashed) belongs to. */
  async byOidc(subject: string): Promise<UserRow | undefined> {
    const sql = `SELECT users.* FROM users JOIN credentials ON credentials.user_id = users.id
      WHERE credentials.kind = 'oidc' AND credentials.subject = ?`
    const [row] = await this.#sql.all(sql, [subject])
    return row && userOf(row)
  }

  async linkOidc(id: string, subject: string, now: number): Promise<void> {
    await this.#sql.write(setCredential(id, "oidc", { subject, verifier: "" }, now))
  }

  async quotaOf(id: string): Promise<Partial<z.output<typeof Quota>>> {
    const [row] = await this.#sql.all("SELECT * FROM quotas WHERE user_id = ?", [id])
    return row ? quotaFrom(row) : {}
  }

  async setQuota(id: string, quota: Partial<z.output<typeof Quota>>): Promise<void> {
    const sql = `INSERT INTO quotas (user_id, sessions_max, requests_per_minute) VALUES (?, ?, ?)
      ON CONFLICT (user_id) DO UPDATE SET sessions_max = excluded.sessions_max,
      requests_per_minute = excluded.requests_per_minute`
    await this.#sql.write({ sql, values: [id, quota.sessionsMax ?? null, quota.requestsPerMinute ?? null] })
  }

  async routeOf(id: string): Promise<z.output<typeof Route> | undefined> {
    const [row] = await this.#sql.all("SELECT * FROM routes WHERE user_id = ?", [id])
    return row && { socket: textOf(row, "socket"), uid: numberOf(row, "uid") }
  }

  async setRoute(id: string, { socket, uid }: z.output<typeof Route>): Promise<void> {
    const sql = `INSERT INTO routes (user_id, socket, uid) VALUES (?, ?, ?)
      ON CONFLICT (user_id) DO UPDATE SET socket = excluded.socket, uid = excluded.uid`
    await this.#sql.write({ sql, values: [id, socket, uid] })
  }
}

export function quotaFrom(row: SqlRow): { sessionsMax?: number; requestsPerMinute?: number } {
  const sessionsMax = maybeNumber(row, "sessions_max")
  const requestsPerMinute = maybeNumber(row, "requests_per_minute")
  return {
    ...(sessionsMax === undefined ? {} : { sessionsMax }),
    ...(requestsPerMinute === undefined ? {} : { requestsPerMinute }),
  }
}

export function addUser({ id, name, role, isDisabled, createdAt }: UserRow): Write {
  const sql = "INSERT INTO users (id, name, role, state, created_at) VALUES (?, ?, ?, ?, ?)"
  return { sql, values: [id, name, role, isDisabled ? "disabled" : "active", createdAt] }
}

export function setCredential(
  id: string,
  kind: "password" | "oidc",
  { subject, verifier }: { readonly subject: string; readonly verifier: string },
  now: number,
): Write {
  const sql = `INSERT INTO credentials (user_id, kind, subject, verifier, changed_at) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (user_id, kind) DO UPDATE SET subject = excluded.subject, verifier = excluded.verifier,
    changed_at = excluded.changed_at`
  return { sql, values: [id, kind, subject, verifier, now] }
}
