import Sqlite from "libsql"
import { Fault, errnoOf, messageOf } from "../fault.ts"
import { keepNewest } from "../keep-newest.ts"
import { migrate, type Migration } from "./migrations.ts"
import { checkBindable, type Bindable, type Row, type Value } from "./value.ts"

export interface DatabaseOptions {
  readonly migrations?: readonly Migration[]
  readonly now?: () => number
  /** How long a writer waits for another process's write. */
  readonly busyMs?: number
}

type Statement = ReturnType<InstanceType<typeof Sqlite>["prepare"]>

const writes = /^\s*(?:insert|update|delete|replace|create|alter|drop)\b|^\s*with\b.*\b(?:insert|update|delete)\b/is
const defaultBusyMs = 5_000
/** Prepared statements kept; the rest are prepared again. */
const statementsMax = 256

/**
 * What a transaction that has returned survives: a `kill -9`, or a power cut as well. The second waits for the disk: a quarter of a
 * millisecond here, many where others write, too.
 */
type Survives = "kill" | "power cut"

/** A SQLite database in WAL mode. What a transaction has returned from survives a power cut, unless it asked for less. */
export class Database implements Disposable {
  readonly path: string
  readonly #sqlite: InstanceType<typeof Sqlite>
  readonly #statements = new Map<string, Statement>()
  #isInTransaction = false
  #survives: Survives = "power cut"
  #isClosed = false

  constructor(path: string, options: DatabaseOptions = {}) {
    this.path = path
    this.#sqlite = this.#guard("open", () => new Sqlite(path))
    try {
      this.#guard("prepare", () => {
        this.#sqlite.exec(`PRAGMA busy_timeout = ${options.busyMs ?? defaultBusyMs}`)
        enterWal(this.#sqlite, options.busyMs ?? defaultBusyMs)
        this.#sqlite.exec("PRAGMA synchronous = FULL")
        this.#sqlite.exec("PRAGMA foreign_keys = ON")
        this.#sqlite.exec("PRAGMA trusted_schema = OFF")
      })
      migrate(this, options.migrations ?? [], options.now ?? Date.now)
    } catch (failure) {
      this.close()
      throw failure
    }
  }

  /** Runs one statement; says how many rows it changed. */
  run(sql: string, parameters: readonly Bindable[] = []): number {
    return this.#use("run", sql, (statement) => {
      // Run like this, it would stay half-way, with its lock, and block every later commit.
      if (statement.reader) throw new Fault("internal", "a statement that gives rows is for get or all")
      return statement.run(checked(parameters)).changes
    })
  }

  /** The first row, as `read` makes it; undefined when there is none. */
  get<T>(sql: string, parameters: readonly Bindable[], read: (row: Row) => T): T | undefined {
    const row = this.#use("get", sql, (statement) => statement.get(checked(parameters)) as RawRow | undefined)
    return row === undefined ? undefined : read(rowOf(row))
  }

  all<T>(sql: string, parameters: readonly Bindable[], read: (row: Row) => T): T[] {
    const rows = this.#use("all", sql, (statement) => statement.all(checked(parameters)) as RawRow[])
    return rows.map((row) => read(rowOf(row)))
  }

  /** Several statements without parameters: for schemas. */
  script(sql: string): void {
    this.#guard("change", () => this.#sqlite.exec(sql))
  }

  /**
   * All or nothing, and durable when it returns. Takes the write lock at the start, so that it cannot fail half-way for
   * want of it. `work` is synchronous: a transaction never waits for anything else.
   */
  transaction<T>(work: () => T, survives: Survives = "power cut"): T {
    if (this.#isInTransaction) throw new Fault("internal", "a transaction inside a transaction")
    this.#survive(survives)
    this.#guard("begin", () => this.#sqlite.exec("BEGIN IMMEDIATE"))
    this.#isInTransaction = true
    try {
      const result = work()
      if (result instanceof Promise) throw new Fault("internal", "a transaction cannot wait")
      this.#guard("commit", () => this.#sqlite.exec("COMMIT"))
      return result
    } catch (failure) {
      this.#rollback()
      throw failure
    } finally {
      this.#isInTransaction = false
    }
  }

  /** Part of the transaction that is under way, or one of its own. */
  atomically<T>(work: () => T, survives?: Survives): T {
    return this.#isInTransaction ? work() : this.transaction(work, survives)
  }

  /** May be called twice. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#statements.clear()
    this.#sqlite.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #survive(survives: Survives): void {
    if (this.#survives === survives) return
    this.#guard("prepare", () => this.#sqlite.exec(`PRAGMA synchronous = ${survives === "kill" ? "NORMAL" : "FULL"}`))
    this.#survives = survives
  }

  #rollback(): void {
    try {
      this.#sqlite.exec("ROLLBACK")
    } catch {
      // SQLite has rolled back by itself (disk full, I/O error): the failure that led here is the one to tell.
    }
  }

  /**
   * Lends a statement, prepared once for each way it is used: the binding reuses the parameters of the last time when a
   * statement that ran in one way runs in another, or again after it failed.
   */
  #use<T>(way: "run" | "get" | "all", sql: string, work: (statement: Statement) => T): T {
    // A statement that finds the database busy stays half-way in the binding and blocks every later commit; so nothing
    // writes without holding the lock already.
    if (!this.#isInTransaction && writes.test(sql)) return this.transaction(() => this.#use(way, sql, work))
    const key = `${way} ${sql}`
    return this.#guard(way === "run" ? "write" : "read", () => {
      try {
        return work(this.#statement(key, sql))
      } catch (failure) {
        this.#statements.delete(key)
        throw failure
      }
    })
  }

  #statement(key: string, sql: string): Statement {
    const kept = this.#statements.get(key)
    if (kept) return kept
    const statement = this.#sqlite.prepare(sql)
    keepNewest(this.#statements, statementsMax, key, statement)
    return statement
  }

  #guard<T>(doing: string, work: () => T): T {
    if (this.#isClosed) throw new Fault("unavailable", "the database is closed", { subject: `database:${this.path}` })
    try {
      return work()
    } catch (thrown) {
      throw thrown instanceof Fault ? thrown : this.#failure(doing, thrown)
    }
  }

  #failure(doing: string, cause: unknown): Fault {
    const name = errnoOf(cause)
    const kind = kinds.find(([pattern]) => pattern.test(name) || pattern.test(messageOf(cause)))
    const [, code, hint] = kind ?? [undefined, "internal" as const, undefined]
    return new Fault(code, `could not ${doing} the database: ${messageOf(cause)}`, {
      cause,
      hint,
      subject: `database:${this.path}`,
    })
  }
}

const kinds = [
  [/SQLITE_BUSY|SQLITE_LOCKED|database is locked/, "unavailable", "another process holds the database; try again"],
  [/SQLITE_FULL|disk is full/, "limit", "make room on the disk"],
  // Also of a disk that has become read-only while the file was open.
  [/SQLITE_IOERR|disk I\/O error/, "unavailable", "look at the disk: it fails, or can only be read"],
  [/SQLITE_CONSTRAINT|constraint failed/, "conflict", undefined],
  [
    /SQLITE_CORRUPT|SQLITE_NOTADB|malformed|not a database/,
    "unavailable",
    "the file is damaged; restore it from a backup",
  ],
  [
    /SQLITE_READONLY|SQLITE_CANTOPEN|unable to open|readonly/i,
    "unavailable",
    "check that the file and its folder can be written",
  ],
] as const

function checked(parameters: readonly unknown[]): Bindable[] {
  return parameters.map((value) => {
    checkBindable(value)
    return value
  })
}

type RawRow = Record<string, Value | ArrayBuffer>

/** The binding adds a column of its own to a single row, and gives bytes as another type when there are many. */
function rowOf(row: RawRow): Row {
  const { _metadata, ...columns } = row
  for (const [name, value] of Object.entries(columns)) {
    if (value instanceof ArrayBuffer) columns[name] = Buffer.from(value)
  }
  return columns as Row
}

/**
 * Switches to WAL. While another process makes the same new file, SQLite says "locked" at once instead of waiting, to avoid
 * a deadlock it cannot rule out; so the waiting is done here.
 */
function enterWal(sqlite: InstanceType<typeof Sqlite>, busyMs: number): void {
  const deadline = performance.now() + busyMs
  for (;;) {
    try {
      return void sqlite.exec("PRAGMA journal_mode = WAL")
    } catch (failure) {
      if (!isBusy.test(`${errnoOf(failure)} ${messageOf(failure)}`) || performance.now() > deadline) throw failure
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, walPauseMs)
    }
  }
}

const walPauseMs = 2
const isBusy = /SQLITE_BUSY|SQLITE_LOCKED|database is locked/
