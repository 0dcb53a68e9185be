import { lstatSync } from "node:fs"
import { errnoOf, Fault, messageOf, type FaultCode } from "@warren/base/fault.ts"
import { refuseDebuggers } from "@warren/base/debugger.ts"
import Sqlite from "libsql"
import type { Reply, Request, Result } from "./request.ts"
import { checkStatement, type Purpose, type Vocabulary } from "./statement.ts"
import { bindable, sayable, sizeOf } from "./values.ts"

refuseDebuggers()

/**
 * The process in which somebody's SQL runs: SQLite does not let go of a thread before it is done, so only a process of its own can
 * be ended at any time. Asked by its parent over IPC, one statement after the other; ends when the parent does.
 */
const [, , path = ""] = process.argv
const busyMs = 2_000
const heapBytesMax = 64 * 1024 * 1024
const answerBytesMax = 512 * 1024
const databaseBytesMax = 1024 * 1024 * 1024

type Connection = InstanceType<typeof Sqlite>
const connections = new Map<Purpose, Connection>()

function connect(purpose: Purpose): Connection {
  const known = connections.get(purpose)
  if (known) return known
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (stats && !stats.isFile()) throw new Fault("unavailable", "the user's database is not a file")
  const connection = new Sqlite(path)
  connection.exec(
    `PRAGMA hard_heap_limit = ${heapBytesMax}; PRAGMA temp_store = MEMORY; PRAGMA busy_timeout = ${busyMs}`,
  )
  connection.exec(
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF",
  )
  const { page_size: pageBytes } = connection.prepare("PRAGMA page_size").get() as { page_size: number }
  connection.exec(`PRAGMA max_page_count = ${Math.floor(databaseBytesMax / pageBytes)}`)
  if (purpose === "query") connection.exec("PRAGMA query_only = ON")
  connections.set(purpose, connection)
  return connection
}

function vocabularyOf(connection: Connection): Vocabulary {
  const names = (sql: string): Set<string> =>
    new Set((connection.prepare(sql).all() as { name: string }[]).map(({ name }) => name.toLowerCase()))
  return {
    functions: names("SELECT DISTINCT name FROM pragma_function_list"),
    modules: names("SELECT name FROM pragma_module_list"),
  }
}

/** Rows as long as there is room. A statement that changes something is always led to its end. */
function read(connection: Connection, request: Request): Result {
  const statement = connection.prepare(request.sql)
  const parameters = request.parameters.map(bindable)
  const nothing = { columns: [], rows: [], isTruncated: false }
  if (!statement.reader) return { ...nothing, changes: statement.run(parameters).changes }
  statement.raw(true)
  statement.safeIntegers(true)
  const result = { ...nothing, columns: statement.columns().map(({ name }) => name), rows: [] as Result["rows"] }
  let bytes = 0
  for (const row of statement.iterate(parameters) as Iterable<unknown[]>) {
    if (!result.isTruncated) {
      bytes += row.reduce<number>((sum, value) => sum + sizeOf(value), 0)
      const said = bytes > answerBytesMax ? undefined : row.map(sayable)
      if (said) bytes += Buffer.byteLength(JSON.stringify(said))
      result.isTruncated = !said || bytes > answerBytesMax || result.rows.length >= request.rowsMax
      if (said && !result.isTruncated) result.rows.push(said)
    }
    if (result.isTruncated && request.purpose === "query") break
  }
  if (result.isTruncated && result.rows.length === 0) throw new Fault("limit", "a row is larger than an answer can be")
  return { ...result, changes: 0 }
}

function execute(connection: Connection, request: Request): Result {
  connection.exec("BEGIN IMMEDIATE")
  try {
    const before = totalChanges(connection)
    const result = read(connection, request)
    const changes = totalChanges(connection) - before
    connection.exec("COMMIT")
    return { ...result, changes }
  } catch (failure) {
    rollback(connection)
    throw failure
  }
}

function totalChanges(connection: Connection): number {
  return (connection.prepare("SELECT total_changes() AS n").get() as { n: number }).n
}

function rollback(connection: Connection): void {
  try {
    connection.exec("ROLLBACK")
  } catch {
    // SQLite did it by itself.
  }
}

const codes: readonly (readonly [RegExp, FaultCode, string?])[] = [
  [/SQLITE_CONSTRAINT/, "conflict"],
  [/SQLITE_READONLY/, "forbidden", "use db.execute"],
  [/SQLITE_NOMEM|SQLITE_TOOBIG/, "limit", "ask for less at once"],
  [/SQLITE_FULL/, "limit", "delete something, or make room on the disk"],
  [/SQLITE_BUSY|SQLITE_LOCKED/, "unavailable", "somebody else is writing; try again"],
  [/SQLITE_CORRUPT|SQLITE_NOTADB/, "unavailable", "the database is damaged; restore it from a backup"],
  [/SQLITE_CANTOPEN|SQLITE_IOERR/, "unavailable"],
]

/** Mostly the statement is wrong, and SQLite says how. */
function faultOf(thrown: unknown): Fault {
  if (thrown instanceof Fault) return thrown
  const [, code, hint] = codes.find(([pattern]) => pattern.test(errnoOf(thrown))) ?? [undefined, "invalid" as const]
  return new Fault(code, messageOf(thrown), { hint, subject: "database:user" })
}

let vocabulary: Vocabulary | undefined

function answer(request: Request): Reply {
  try {
    const connection = connect(request.purpose)
    vocabulary ??= vocabularyOf(connection)
    checkStatement(request.sql, request.purpose, request.parameters.length, vocabulary)
    const result = request.purpose === "query" ? read(connection, request) : execute(connection, request)
    // A statement that was left half-way holds on to what it saw, for as long as this process lives.
    return { result, isSpent: request.purpose === "query" && result.isTruncated }
  } catch (thrown) {
    const fault = faultOf(thrown)
    const isHarmless = ["invalid", "forbidden", "conflict"].includes(fault.code)
    return { fault: fault.toData(), isSpent: !isHarmless }
  }
}

process.on("message", (request: Request) => process.send?.(answer(request)))
process.on("disconnect", () => process.exit(0))
