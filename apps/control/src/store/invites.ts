import { failpoint } from "@warren/base/failpoint.ts"
import { maybeNumber, maybeText, numberOf, textOf, type Sql, type SqlRow } from "./sql.ts"
import { addUser, setCredential, type UserRow } from "./users.ts"

export interface InviteRow {
  readonly id: string
  readonly hash: string
  readonly role: UserRow["role"]
  readonly name: string | undefined
  readonly createdAt: number
  readonly expiresAt: number
  readonly usedAt: number | undefined
}

/** Invites, by the hash of their code. */
export class Invites {
  readonly #sql: Sql

  constructor(sql: Sql) {
    this.#sql = sql
  }

  async add({ id, hash, role, name, createdAt, expiresAt }: InviteRow): Promise<void> {
    const sql = "INSERT INTO invites (id, hash, role, name, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?)"
    await this.#sql.write(
      { sql: "DELETE FROM invites WHERE expires_at <= ?", values: [createdAt] },
      { sql, values: [id, hash, role, name ?? null, createdAt, expiresAt] },
    )
  }

  async byHash(hash: string): Promise<InviteRow | undefined> {
    const [row] = await this.#sql.all("SELECT * FROM invites WHERE hash = ?", [hash])
    return row && inviteOf(row)
  }

  async open(now: number): Promise<InviteRow[]> {
    const sql = "SELECT * FROM invites WHERE used_at IS NULL AND expires_at > ? ORDER BY created_at, id"
    return (await this.#sql.all(sql, [now])).map(inviteOf)
  }

  async revoke(id: string): Promise<boolean> {
    const [deleted] = await this.#sql.write({ sql: "DELETE FROM invites WHERE id = ?", values: [id] })
    return deleted === 1
  }

  /** Uses an invite up, in one step with the user it makes and their password. Of two at once one gets `conflict`. */
  async redeem(
    hash: string,
    now: number,
    what: { readonly user: UserRow; readonly isNew: boolean; readonly verifier: string | undefined },
  ): Promise<void> {
    const { user, isNew, verifier } = what
    const use = "UPDATE invites SET used_at = ? WHERE hash = ? AND used_at IS NULL AND expires_at > ?"
    await this.#sql.write(
      { sql: use, values: [now, hash, now], rows: 1 },
      ...(isNew ? [addUser(user)] : []),
      ...(verifier === undefined ? [] : [setCredential(user.id, "password", { subject: "", verifier }, now)]),
    )
    failpoint("invite/redeemed")
  }
}

function inviteOf(row: SqlRow): InviteRow {
  return {
    id: textOf(row, "id"),
    hash: textOf(row, "hash"),
    role: textOf(row, "role") === "admin" ? "admin" : "member",
    name: maybeText(row, "name"),
    createdAt: numberOf(row, "created_at"),
    expiresAt: numberOf(row, "expires_at"),
    usedAt: maybeNumber(row, "used_at"),
  }
}
