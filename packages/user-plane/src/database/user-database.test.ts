import { execFileSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs"
import { symlink, writeFile } from "node:fs/promises"
import { eventually } from "@warren/base/testing/eventually.ts"
import { bundleProgram, Program } from "@warren/base/testing/program.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { databaseCalls } from "@warren/protocol/user-plane/database.ts"
import fc from "fast-check"
import Sqlite from "libsql"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { Result } from "./request.ts"
import { databaseHandlers, UserDatabase } from "./user-database.ts"

const never = new AbortController().signal
const forever = "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)"
let folder: TempFolder
let database: UserDatabase
let program: string
let path: string

beforeAll(async () => {
  folder = await TempFolder.make()
  path = folder.at("user.db")
  program = await bundleProgram(new URL("child.ts", import.meta.url), folder)
  await writeFile(folder.at("secret"), "top secret")
  database = new UserDatabase({ path, program })
  await execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT UNIQUE, more)")
  await execute("INSERT INTO notes (text) VALUES ('one'), ('two'), ('three')")
})
afterAll(async () => {
  await database[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
  expect(processes()).toEqual([])
  await folder[Symbol.asyncDispose]()
})

async function ask(purpose: "query" | "execute", sql: string, parameters: unknown[], more: object, signal = never) {
  const call = `db.${purpose}` as const
  const input = databaseCalls[call].in.parse({ sql, parameters, ...more })
  const result: Result = await databaseHandlers(database)[call](input, { signal, caller: { name: "anna" } })
  expect(databaseCalls[call].out.parse(result)).toEqual(result)
  return result
}
const query = (sql: string, parameters: unknown[] = [], more: object = {}, signal = never) =>
  ask("query", sql, parameters, more, signal)
const execute = (sql: string, parameters: unknown[] = [], more: object = {}) => ask("execute", sql, parameters, more)
const rows = async (sql: string, parameters: unknown[] = []) => (await query(sql, parameters)).rows

/** Processes that run our program. */
function processes(): string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").includes(program)
    } catch {
      return false
    }
  })
}

describe("the user's database", () => {
  test("is read", async () => {
    expect(await query("SELECT id, text, text FROM notes WHERE id < ? ORDER BY id;", [3])).toEqual({
      columns: ["id", "text", "text"],
      rows: [
        [1, "one", "one"],
        [2, "two", "two"],
      ],
      changes: 0,
      isTruncated: false,
    })
  })

  test("is changed, and says how much", async () => {
    expect((await execute("INSERT INTO notes (text) VALUES (?), (?)", ["a", "b"])).changes).toBe(2)
    const deleted = await execute("DELETE FROM notes WHERE text IN ('a', 'b') RETURNING text")
    expect([deleted.rows, deleted.changes]).toEqual([[["a"], ["b"]], 2])
  })

  test("is a file of the user's own, that another program can read", async () => {
    const other = new Sqlite(path)
    expect(other.prepare("SELECT count(*) AS n FROM notes").get()).toMatchObject({ n: 3 })
    other.close()
  })

  test("gives back what was bound", async () => {
    const whole = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((n) => ({ integer: String(n) }))
    const value = fc.oneof(
      fc.string({ unit: "grapheme" }).filter((text) => !text.includes("\0")),
      fc.double({ noNaN: true, noDefaultInfinity: true }).filter((n) => !Object.is(n, -0)),
      fc.maxSafeInteger(),
      whole.filter(({ integer }) => !Number.isSafeInteger(Number(integer))),
      fc.uint8Array().map((bytes) => ({ base64: Buffer.from(bytes).toString("base64") })),
      fc.constant(null),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(value, { minLength: 1, maxLength: 8 }), async (values) => {
        expect(await rows(`SELECT ${values.map(() => "?").join(", ")}`, values)).toEqual([values])
      }),
      { numRuns: 60 },
    )
    expect(await rows("SELECT ?, typeof(?), typeof(?), 9e999", [true, 5, 5.5])).toEqual([
      [1, "integer", "real", "Infinity"],
    ])
  })

  test("has words, vectors, JSON and triggers", async () => {
    await execute("CREATE VIRTUAL TABLE words USING fts5 (text)")
    await execute("INSERT INTO words VALUES ('a quick fox')")
    expect(await rows("SELECT snippet(words, 0, '[', ']', '…', 5) FROM words WHERE words MATCH ?", ["fox"])).toEqual([
      ["a quick [fox]"],
    ])
    expect(await rows("SELECT vector_distance_cos(vector32('[1,0]'), vector32('[0,1]'))")).toEqual([[1]])
    expect(await rows("SELECT value FROM json_each(?)", ["[1,2]"])).toEqual([[1], [2]])
    await execute("CREATE TABLE log (n)")
    await execute(`CREATE TRIGGER noted AFTER INSERT ON log BEGIN
      UPDATE log SET n = CASE WHEN n > 5 THEN 5 ELSE n END; DELETE FROM log WHERE n < 0; END;`)
    await execute("INSERT INTO log VALUES (9), (-1)")
    expect(await rows("SELECT n FROM log")).toEqual([[5]])
    expect(await rows("SELECT name FROM pragma_table_info('log')")).toEqual([["n"]])
  })

  test("says what is wrong with a statement, in SQLite's words", async () => {
    await expect(query("SELECT nonsense FROM notes")).rejects.toMatchObject({ code: "invalid", message: /nonsense/ })
    await expect(execute("INSERT INTO notes (text) VALUES ('one')")).rejects.toMatchObject({ code: "conflict" })
    await expect(query("SELECT ?", [1, 2])).rejects.toMatchObject({ code: "invalid", message: /1 parameters, and 2/ })
    await expect(query("SELECT ?1", [1])).rejects.toMatchObject({ code: "invalid" })
    await expect(query("SELECT ?", [{ integer: "9223372036854775808" }])).rejects.toMatchObject({ code: "invalid" })
  })

  test("gives as many rows and bytes as one answer holds, and says that there were more", async () => {
    const many = await query(`${forever} SELECT n FROM c`, [], { rowsMax: 5_000 })
    expect([many.rows.length, many.isTruncated]).toEqual([5_000, true])
    const large = await query(`${forever} SELECT hex(zeroblob(10000)) FROM c`)
    expect([large.rows.length, large.isTruncated]).toEqual([13, true])
    expect((await query("SELECT id FROM notes", [], { rowsMax: 3 })).isTruncated).toBe(false)
    await expect(query("SELECT zeroblob(1000000)")).rejects.toMatchObject({ code: "limit" })
    const returned = await execute("INSERT INTO log SELECT value FROM generate_series(1, 50) RETURNING n", [], {
      rowsMax: 10,
    })
    expect([returned.rows.length, returned.isTruncated]).toEqual([10, true])
    expect(await rows("SELECT count(*) FROM log")).toEqual([[51]])
  })
})

describe("hostile statements", () => {
  const elsewhere = (): string => folder.at("elsewhere.db")
  const secret = (): string => folder.at("secret")

  test.each([
    ["ATTACH", () => `ATTACH '${elsewhere()}' AS other`],
    ["ATTACH behind a comment", () => `/* SELECT */ -- x\n ATTACH '${elsewhere()}' AS other`],
    ["ATTACH behind a semicolon", () => `; ATTACH '${elsewhere()}' AS other`],
    ["ATTACH as a second statement", () => `SELECT 1; ATTACH '${elsewhere()}' AS other`],
    ["ATTACH behind a byte order mark", () => `\ufeffATTACH '${elsewhere()}' AS other`],
    ["DETACH", () => "DETACH main"],
    ["VACUUM INTO", () => `VACUUM INTO '${elsewhere()}'`],
    ["VACUUM", () => "VACUUM"],
    ["PRAGMA writable_schema", () => "PRAGMA writable_schema = ON"],
    ["PRAGMA query_only", () => "PRAGMA query_only = OFF"],
    ["PRAGMA behind EXPLAIN", () => "EXPLAIN PRAGMA query_only = OFF"],
    ["PRAGMA behind two", () => "EXPLAIN QUERY PLAN PRAGMA query_only = OFF"],
    ["PRAGMA as a table", () => "SELECT * FROM pragma_database_list"],
    ["PRAGMA with a quoted name", () => 'SELECT * FROM "pragma_database_list"'],
    ["BEGIN", () => "BEGIN EXCLUSIVE"],
    ["SAVEPOINT", () => "SAVEPOINT a"],
    ["load_extension", () => "SELECT load_extension('/tmp/x.so')"],
    ["readfile", () => `SELECT readfile('${secret()}')`],
    ["readfile with a gap", () => `SELECT ReadFile /* x */ ('${secret()}')`],
    ["readfile in quotes", () => `SELECT "readfile"('${secret()}')`],
    ["readfile in brackets", () => `SELECT [readfile]('${secret()}')`],
    ["readfile in ticks", () => `SELECT \`readfile\`('${secret()}')`],
    ["writefile", () => `SELECT writefile('${elsewhere()}', 'x')`],
    ["fsdir", () => `SELECT name FROM fsdir('${folder.path}')`],
    ["fsdir as a text", () => `SELECT name FROM 'fsdir'('${folder.path}')`],
    ["fsdir as a table", () => `SELECT name FROM fsdir WHERE path = '${folder.path}'`],
    ["SQL in a text", () => `SELECT sha3_query('ATTACH ''${elsewhere()}'' AS x')`],
    ["a tokenizer by address", () => "SELECT fts3_tokenizer('simple', x'4141414141414141')"],
    ["raw pages", () => "SELECT data FROM sqlite_dbpage"],
    ["NUL", () => "SELECT 1\0; ATTACH 'x' AS y"],
    ["nothing", () => " -- only a comment"],
    ["an open quote", () => "SELECT 'abc"],
    ["two statements", () => "DELETE FROM notes; DELETE FROM log"],
  ])("are refused for either purpose: %s", async (_, sql) => {
    const refused = { code: expect.stringMatching(/^(?:invalid|forbidden)$/) }
    await expect(query(sql())).rejects.toMatchObject(refused)
    await expect(execute(sql())).rejects.toMatchObject(refused)
    expect(existsSync(elsewhere())).toBe(false)
    expect(await rows("SELECT count(*) FROM notes")).toEqual([[3]])
  })

  test.each([
    ["a table in disguise", "CREATE VIRTUAL TABLE spy USING fsdir"],
    ["a content table in disguise", "CREATE VIRTUAL TABLE spy USING fts5 (name, content='fsdir')"],
    ["a view", "CREATE VIEW spy AS SELECT readfile('/etc/passwd')"],
    ["a trigger", "CREATE TRIGGER spy AFTER DELETE ON notes BEGIN SELECT writefile('/tmp/x', 'y'); END"],
    ["a default", "CREATE TABLE spy (a DEFAULT (readfile('/etc/passwd')))"],
    ["something temporary", "CREATE TEMP TABLE spy (a)"],
  ])("are refused when changing: %s", async (_, sql) => {
    await expect(execute(sql)).rejects.toMatchObject({ code: expect.stringMatching(/^(?:invalid|forbidden)$/) })
  })

  test.each([
    "INSERT INTO notes (text) VALUES ('x')",
    "WITH a AS (SELECT 1) INSERT INTO notes (text) SELECT 'x' FROM a",
    "WITH a AS (SELECT 1) DELETE FROM notes WHERE id IN (SELECT 1 FROM a) RETURNING id",
    "DROP TABLE notes",
    "CREATE TABLE other (a)",
    "REINDEX",
  ])("are refused when only reading: %s", async (sql) => {
    await expect(query(sql)).rejects.toMatchObject({ code: "forbidden", hint: "use db.execute" })
    expect(await rows("SELECT count(*) FROM notes")).toEqual([[3]])
  })

  test.each([
    ["for ever", `${forever} SELECT max(n) FROM c`, "late"],
    ["for ever, joined", "SELECT count(*) FROM generate_series(1, 1e9) a, generate_series(1, 1e9) b", "late"],
    ["a blob too large", "SELECT length(hex(randomblob(900000000)))", "limit"],
    ["a blob beyond everything", "SELECT zeroblob(2147483648)", "limit"],
    ["zeroes in mass", "SELECT zeroblob(900000000) FROM generate_series(1, 100)", "limit"],
    ["random bytes in mass", "SELECT randomblob(30000000) FROM generate_series(1, 500)", "limit"],
    ["a text that grows", `${forever} SELECT length(group_concat(hex(randomblob(10000)))) FROM c`, "late"],
    ["a sort of everything", `${forever} SELECT n, randomblob(1000) AS r FROM c ORDER BY r`, "limit"],
    ["a deep expression", `SELECT ${"(".repeat(5_000)}1${")".repeat(5_000)}`, "invalid"],
  ])("end within their limits, and nobody else waits for them: %s", async (_, sql, code) => {
    const isLate = code === "late"
    const timeoutMs = isLate ? 1_500 : 20_000
    const bad = query(sql, [], { timeoutMs }).catch((failure: unknown) => failure)
    expect(await rows("SELECT count(*) FROM notes")).toEqual([[3]])
    const ended = { code: "limit", message: `the statement was ended after ${timeoutMs} ms` }
    expect(await bad).toMatchObject(isLate ? ended : { code })
    expect(await rows("SELECT count(*) FROM notes")).toEqual([[3]])
  })

  test("end within the limit of the disk", async () => {
    await execute("CREATE TABLE pile (a)")
    const sql = "INSERT INTO pile SELECT zeroblob(10000000) FROM generate_series(1, 1000)"
    await expect(execute(sql, [], { timeoutMs: 20_000 })).rejects.toMatchObject({ code: "limit" })
    expect(await rows("SELECT count(*) FROM pile")).toEqual([[0]])
  })

  test("change nothing when they are ended half-way", async () => {
    const slow = "UPDATE notes SET more = (SELECT count(*) FROM generate_series(1, 1e9)) WHERE id > 0"
    await expect(execute(slow, [], { timeoutMs: 500 })).rejects.toMatchObject({ code: "limit" })
    await execute("UPDATE notes SET more = 1 WHERE id = 1")
    expect(await rows("SELECT more FROM notes ORDER BY id")).toEqual([[1], [null], [null]])
  })

  test("never reach a process that sees our environment or our files", async () => {
    await rows("SELECT 1")
    const [pid = ""] = processes()
    expect(readFileSync(`/proc/${pid}/environ`, "utf8")).not.toContain("PATH=")
    const open = readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`))
    expect(open.filter((target) => target.endsWith(".db") && target !== path)).toEqual([])
    expect(execFileSync("grep", ["-E", "Max (cpu|data|core)", `/proc/${pid}/limits`]).toString()).not.toMatch(
      /unlimited\s+unlimited/,
    )
  })
})

describe("a statement", () => {
  test("that is cancelled rejects with the caller's reason, and its process is gone", async () => {
    const cancel = new AbortController()
    const before = new Set(processes())
    const asked = query(`${forever} SELECT max(n) FROM c`, [], { timeoutMs: 30_000 }, cancel.signal)
    await eventually(() => processes().length > 0)
    cancel.abort(new Error("never mind"))
    await expect(asked).rejects.toThrow("never mind")
    expect(processes().filter((pid) => !before.has(pid))).toEqual([])
  })

  test("waits its turn, and is refused when too many do", async () => {
    const fast = Array.from({ length: 40 }, () => rows("SELECT count(*) FROM notes"))
    expect((await Promise.all(fast)).flat(2)).toEqual(Array.from({ length: 40 }, () => 3))
    const many = await Promise.allSettled(Array.from({ length: 80 }, () => rows("SELECT 1")))
    const failed = many.filter(({ status }) => status === "rejected")
    expect(failed.length).toBe(80 - 64 - 2)
    expect(failed[0]).toMatchObject({ reason: { code: "limit" } })
    expect(processes().length).toBeLessThanOrEqual(2)
  })

  test("that waits can be cancelled", async () => {
    const cancel = new AbortController()
    const slow = [1, 2].map(() => query(`${forever} SELECT max(n) FROM c`, [], { timeoutMs: 700 }).catch(() => "ended"))
    const waiting = query("SELECT 1", [], {}, cancel.signal)
    cancel.abort(new Error("never mind"))
    await expect(waiting).rejects.toThrow("never mind")
    expect(await Promise.all(slow)).toEqual(["ended", "ended"])
    expect(await rows("SELECT 1")).toEqual([[1]])
  })

  test("ends with the runner, however busy it is", async () => {
    const asker = await bundleProgram(new URL("testing/asker.ts", import.meta.url), folder)
    const before = new Set(processes())
    await using runner = new Program(asker, [folder.at("other.db"), program])
    expect(await runner.line()).toBe("busy")
    expect(processes().filter((pid) => !before.has(pid)).length).toBeGreaterThan(0)
    runner.kill()
    await runner.ended
    await eventually(() => processes().every((pid) => before.has(pid)))
  })
})

test.each([
  ["a link", (at: string) => symlink(path, at)],
  ["damaged", (at: string) => writeFile(at, "no database".repeat(1_000))],
])("a file that is %s is refused", async (name, make) => {
  const at = folder.at(`${name}.db`)
  await make(at)
  await using other = new UserDatabase({ path: at, program })
  const asked = { sql: "SELECT * FROM notes", parameters: [], timeoutMs: 5_000, rowsMax: 1 }
  await expect(other.ask("query", asked, never)).rejects.toMatchObject({ code: "unavailable" })
})
