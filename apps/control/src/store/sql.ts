export type SqlValue = string | number | null
export type SqlRow = Readonly<Record<string, SqlValue>>

/** A statement that changes something. */
export interface Write {
  readonly sql: string
  readonly values: readonly SqlValue[]
  /** How many rows it has to change; otherwise nothing of what is written with it happens, and `conflict` is thrown. */
  readonly rows?: number
}

/**
 * A database that keeps the control plane's tables. Statements are written once, in what SQLite and PostgreSQL both
 * understand, with `?` for values; text and whole numbers are all there is.
 */
export interface Sql extends AsyncDisposable {
  all(sql: string, values: readonly SqlValue[]): Promise<readonly SqlRow[]>
  /**
   * Another number whenever who may has changed, as far as this can be known here; undefined where others write, too. What is
   * merely noted (audit entries, last uses) does not count.
   */
  readonly version: number | undefined
  /** All or nothing, as if nobody else wrote meanwhile, and durable when it resolves. Gives the rows each has changed. */
  write(...writes: readonly Write[]): Promise<readonly number[]>
}

export function textOf(row: SqlRow, column: string): string {
  const value = row[column]
  return typeof value === "string" ? value : ""
}

export function numberOf(row: SqlRow, column: string): number {
  return Number(row[column] ?? 0)
}

export function maybeText(row: SqlRow, column: string): string | undefined {
  const value = row[column]
  return typeof value === "string" ? value : undefined
}

export function maybeNumber(row: SqlRow, column: string): number | undefined {
  const value = row[column]
  return value === null || value === undefined ? undefined : Number(value)
}
