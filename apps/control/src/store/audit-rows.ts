import { numberOf, textOf, type Sql, type SqlRow } from "./sql.ts"

export interface AuditRow {
  readonly seq: number
  readonly time: number
  readonly user: string
  readonly via: string
  readonly action: string
  readonly subject: string
  readonly address: string
  readonly request: string
  readonly result: string
  readonly hash: string
}

export interface CheckpointRow {
  readonly seq: number
  readonly hash: string
  readonly time: number
  readonly signature: string
}

/** The audit log's rows. They are added and, from the front, forgotten; nothing changes one. */
export class AuditRows {
  readonly #sql: Sql

  constructor(sql: Sql) {
    this.#sql = sql
  }

  /** `conflict` when somebody else has taken one of the numbers. */
  async add(rows: readonly AuditRow[]): Promise<void> {
    const sql = `INSERT INTO audit (seq, time, user_id, via, action, subject, address, request, result, hash)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
    const values = (row: AuditRow) => [
      ...[row.seq, row.time, row.user, row.via, row.action],
      ...[row.subject, row.address, row.request, row.result, row.hash],
    ]
    await this.#sql.write(...rows.map((row) => ({ sql, values: values(row) })))
  }

  async last(): Promise<AuditRow | undefined> {
    const [row] = await this.#sql.all("SELECT * FROM audit ORDER BY seq DESC LIMIT 1", [])
    return row && auditOf(row)
  }

  async read(after: number, limit: number): Promise<AuditRow[]> {
    const rows = await this.#sql.all("SELECT * FROM audit WHERE seq > ? ORDER BY seq LIMIT ?", [after, limit])
    return rows.map(auditOf)
  }

  /** The last ones before a number, in order. */
  async readLast(before: number, after: number, limit: number): Promise<AuditRow[]> {
    const sql = "SELECT * FROM audit WHERE seq < ? AND seq > ? ORDER BY seq DESC LIMIT ?"
    return (await this.#sql.all(sql, [before, after, limit])).map(auditOf).toReversed()
  }

  async checkpoint(): Promise<CheckpointRow | undefined> {
    const [row] = await this.#sql.all("SELECT * FROM audit_checkpoints ORDER BY seq DESC LIMIT 1", [])
    return (
      row && {
        seq: numberOf(row, "seq"),
        hash: textOf(row, "hash"),
        time: numberOf(row, "time"),
        signature: textOf(row, "signature"),
      }
    )
  }

  /** Forgets the rows up to the checkpoint, which takes their place. */
  async truncate({ seq, hash, time, signature }: CheckpointRow): Promise<void> {
    const sql = "INSERT INTO audit_checkpoints (seq, hash, time, signature) VALUES (?, ?, ?, ?)"
    await this.#sql.write(
      { sql, values: [seq, hash, time, signature] },
      { sql: "DELETE FROM audit WHERE seq <= ?", values: [seq] },
    )
  }
}

function auditOf(row: SqlRow): AuditRow {
  return {
    seq: numberOf(row, "seq"),
    time: numberOf(row, "time"),
    user: textOf(row, "user_id"),
    via: textOf(row, "via"),
    action: textOf(row, "action"),
    subject: textOf(row, "subject"),
    address: textOf(row, "address"),
    request: textOf(row, "request"),
    result: textOf(row, "result"),
    hash: textOf(row, "hash"),
  }
}
