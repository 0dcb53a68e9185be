import { chmod, readFile, writeFile } from "node:fs/promises"
import fc from "fast-check"
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest"
import { Fault } from "../fault.ts"
import { bundleProgram, Program } from "../testing/program.ts"
import { TempFolder } from "../testing/temp-folder.ts"
import { Database } from "./database.ts"
import type { Bindable } from "./value.ts"

const migrations = [
  {
    name: "notes",
    sql: "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT UNIQUE NOT NULL CHECK (text <> 'bad')) STRICT",
  },
  { name: "things", sql: "CREATE TABLE things (any_value, note INTEGER REFERENCES notes (id))" },
]

let folder: TempFolder
let database: Database
let path: string
let files = 0
beforeAll(async () => void (folder = await TempFolder.make()))
afterAll(() => folder[Symbol.asyncDispose]())
beforeEach(() => {
  path = folder.at(`${files++}.db`)
  database = new Database(path, { migrations, busyMs: 0 })
  return () => database.close()
})

const texts = (): unknown[] => database.all("SELECT text FROM notes ORDER BY id", [], (row) => row["text"])
const add = (text: string): number => database.run("INSERT INTO notes (text) VALUES (?)", [text])
const code = (expected: string): unknown => expect.objectContaining({ constructor: Fault, code: expected })

describe("a database", () => {
  test("runs, gets and lists", () => {
    expect([add("a"), add("b")]).toEqual([1, 1])
    expect(database.run("UPDATE notes SET text = text || '!'")).toBe(2)
    expect(database.get("SELECT * FROM notes WHERE id = ?", [2], (row) => row)).toEqual({ id: 2, text: "b!" })
    expect(database.get("SELECT * FROM notes WHERE id = ?", [3], (row) => row)).toBeUndefined()
    expect(database.all("SELECT * FROM notes", [], (row) => row)).toEqual([
      { id: 1, text: "a!" },
      { id: 2, text: "b!" },
    ])
  })

  test("a row that is written and read at once is committed, and holds no lock", () => {
    const id = database.get("INSERT INTO notes (text) VALUES (?) RETURNING id", ["a"], (row) => row["id"])
    using other = new Database(path, { migrations, busyMs: 0 })
    expect(other.all("SELECT id, text FROM notes", [], (row) => row)).toEqual([{ id, text: "a" }])
    other.transaction(() => other.run("DELETE FROM notes"))
  })

  test("gives back what was bound, through get and all alike", () => {
    const bindable = fc.oneof(
      fc.string({ unit: "grapheme" }).filter((text) => !text.includes("\0")),
      fc.double({ noNaN: true }).filter((number) => !Object.is(number, -0)),
      fc.maxSafeInteger(),
      fc.bigInt({ min: -(2n ** 53n), max: 2n ** 53n }),
      fc.uint8Array({ maxLength: 64 }),
      fc.uint8Array({ minLength: 2, maxLength: 64 }).map((bytes) => bytes.subarray(1)),
      fc.constant(null),
    )
    fc.assert(
      fc.property(bindable, (value: Bindable) => {
        const expected =
          value instanceof Uint8Array ? Buffer.from(value) : typeof value === "bigint" ? Number(value) : value
        const one = database.get("SELECT ? AS v", [value], (row) => row)
        expect(one).toEqual({ v: expected })
        expect(database.all("SELECT ? AS v", [value], (row) => row)).toEqual([{ v: expected }])
        if (value instanceof Uint8Array) expect(Buffer.isBuffer(one?.["v"])).toBe(true)
      }),
    )
  })

  test("answers every statement with its own parameters, however and after whatever it was used", () => {
    const ways = {
      run: (sql: string, n: bigint) => (database.run(sql.replace("RETURNING any_value AS n", ""), [n]), n),
      get: (sql: string, n: bigint) => database.get(sql, [n], (row) => row["n"]),
      all: (sql: string, n: bigint) => database.all(sql, [n], (row) => row["n"])[0],
    }
    const overflows = -(2n ** 63n)
    const step = fc.record({
      way: fc.constantFrom("run", "get", "all"),
      sql: fc.constantFrom(
        "SELECT abs(?) AS n",
        "SELECT abs(?) AS n UNION ALL SELECT 0",
        "INSERT INTO things (any_value) VALUES (abs(?)) RETURNING any_value AS n",
      ),
      n: fc.oneof(fc.bigInt({ min: 0n, max: 50n }), fc.constant(overflows)),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
        for (const { way, sql, n } of steps) {
          if (way === "run" && sql.startsWith("SELECT")) expect(() => ways.run(sql, n)).toThrow(/for get or all/)
          else if (n === overflows) expect(() => ways[way](sql, n)).toThrow(/overflow/)
          else expect(Number(ways[way](sql, n))).toBe(Number(n))
        }
      }),
      { numRuns: 200 },
    )
  })

  test.each([
    ["a boolean", true],
    ["a Date", new Date(0)],
    ["an object", { a: 1 }],
    ["an array", [1]],
    ["undefined", undefined],
    ["NaN", Number.NaN],
    ["a symbol", Symbol("x")],
    ["a function", () => undefined],
    ["an ArrayBuffer", new ArrayBuffer(1)],
    ["a Float64Array", new Float64Array(1)],
    ["a bigint of 65 bits", 2n ** 63n],
    ["a negative bigint of 65 bits", -(2n ** 63n) - 1n],
    ["text with NUL", "a\0b"],
  ])("refuses %s as a parameter, and lives", (_, value) => {
    const parameters = ["fine", value] as unknown as Bindable[]
    expect(() => database.run("INSERT INTO things (any_value, note) VALUES (?, ?)", parameters)).toThrow(
      code("invalid"),
    )
    expect(() => database.get("SELECT ?, ?", parameters, (row) => row)).toThrow(code("invalid"))
    expect(() => database.all("SELECT ?, ?", parameters, (row) => row)).toThrow(code("invalid"))
    expect(add("still here")).toBe(1)
  })

  test("takes the largest and smallest integers there are", () => {
    const stored = database.get(
      "SELECT CAST(? AS TEXT) || ' ' || CAST(? AS TEXT) AS t",
      [2n ** 63n - 1n, -(2n ** 63n)],
      (row) => row["t"],
    )
    expect(stored).toBe("9223372036854775807 -9223372036854775808")
  })

  test.each([
    ["a unique key", () => add("a")],
    ["a check", () => add("bad")],
    ["a foreign key", () => database.run("INSERT INTO things (note) VALUES (99)")],
    ["not null", () => database.run("INSERT INTO notes (text) VALUES (NULL)")],
  ])("tells a broken constraint as a conflict: %s", (_, breakIt) => {
    add("a")
    expect(breakIt).toThrow(code("conflict"))
    expect(texts()).toEqual(["a"])
  })

  test("tells wrong SQL as our own mistake", () => {
    expect(() => database.run("SELEKT 1")).toThrow(code("internal"))
    expect(() => database.script("CREATE TABLE")).toThrow(code("internal"))
  })

  test("prepares more statements than it keeps", () => {
    for (let i = 0; i < 600; i++) expect(database.get(`SELECT ${i} AS n`, [], (row) => row["n"])).toBe(i)
    expect(database.get("SELECT 0 AS n", [], (row) => row["n"])).toBe(0)
  })

  test("once closed refuses everything, and may be closed again", () => {
    database.close()
    database.close()
    const refused = code("unavailable")
    expect(() => add("a")).toThrow(refused)
    expect(() => database.get("SELECT 1", [], (row) => row)).toThrow(refused)
    expect(() => database.all("SELECT 1", [], (row) => row)).toThrow(refused)
    expect(() => database.script("SELECT 1")).toThrow(refused)
    expect(() => database.transaction(() => 1)).toThrow(refused)
  })
})

describe("a transaction", () => {
  test("is there when it returns, with its answer", () => {
    expect(database.transaction(() => add("a") + add("b"))).toBe(2)
    using other = new Database(path, { migrations })
    expect(other.all("SELECT text FROM notes", [], (row) => row["text"])).toEqual(["a", "b"])
  })

  test("that throws leaves nothing, and the thrown travels on as it is", () => {
    const reason = new Error("mine")
    const work = (): never => {
      add("a")
      throw reason
    }
    expect(() => database.transaction(work)).toThrow(reason)
    expect(texts()).toEqual([])
    expect(database.transaction(() => add("b"))).toBe(1)
  })

  test("in which a statement fails leaves nothing", () => {
    expect(() => database.transaction(() => [add("a"), add("a")])).toThrow(code("conflict"))
    expect(texts()).toEqual([])
  })

  test("goes on after a conflict that it handles", () => {
    database.transaction(() => {
      add("a")
      expect(() => add("a")).toThrow(code("conflict"))
      add("b")
    })
    expect(texts()).toEqual(["a", "b"])
  })

  test("inside a transaction is refused, and the outer one leaves nothing", () => {
    expect(() => database.transaction(() => [add("a"), database.transaction(() => add("b"))])).toThrow(code("internal"))
    expect(texts()).toEqual([])
  })

  test("that wants to wait is refused", async () => {
    let late: Promise<unknown> | undefined
    const work = (): Promise<unknown> => (late = Promise.resolve(add("a")))
    expect(() => database.transaction(work)).toThrow(code("internal"))
    await late
    expect(texts()).toEqual([])
  })

  test("any series of them keeps exactly what the ones that returned wrote", () => {
    const step = fc.record({ texts: fc.array(fc.nat(30).map(String), { maxLength: 4 }), fails: fc.boolean() })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 8 }), (steps) => {
        database.run("DELETE FROM notes")
        let model: string[] = []
        for (const { texts: added, fails } of steps) {
          const next = [...model, ...added]
          try {
            database.transaction(() => {
              for (const text of added) add(text)
              if (fails) throw new Error("planned")
            })
            model = next
          } catch {
            expect(fails || new Set(next).size < next.length).toBe(true)
          }
          expect(texts()).toEqual(model)
        }
      }),
      { numRuns: 30 },
    )
  })
})

describe("a database and the world", () => {
  test("held by another process is unavailable, and works once it lets go", async () => {
    const program = await bundleProgram(new URL("../../fixtures/holder.ts", import.meta.url), folder)
    await using holder = new Program(program, [path])
    expect(await holder.line()).toBe("holding")
    const refused = code("unavailable")
    expect(() => database.transaction(() => add("a"))).toThrow(refused)
    expect(() => add("a")).toThrow(refused)
    const insert = "INSERT INTO notes (text) VALUES (?) RETURNING id"
    expect(() => database.get(insert, ["a"], (row) => row)).toThrow(refused)
    expect(() => database.all(insert, ["a"], (row) => row)).toThrow(refused)
    expect(() => database.run("WITH t AS (SELECT 'a' AS x) INSERT INTO notes (text) SELECT x FROM t")).toThrow(refused)
    expect(texts()).toEqual([])
    holder.say("let go")
    expect(await holder.line()).toBe("let go")
    expect(database.transaction(() => add("a"))).toBe(1)
  })

  test.each([
    [
      "text instead of a database",
      () => Buffer.from("this is not a database at all, and it is long enough".repeat(200)),
    ],
    [
      "a damaged first page",
      (good: Buffer) => Buffer.concat([good.subarray(0, 100), Buffer.alloc(good.length - 100, 0xff)]),
    ],
  ])("a file that is damaged is unavailable, with a hint, and is left as it is: %s", async (_, damage) => {
    for (let i = 0; i < 50; i++) add(`note ${i}`)
    database.script(`VACUUM INTO '${path}.copy'`)
    const copy = `${path}.copy`
    const damaged = damage(await readFile(copy))
    await writeFile(copy, damaged)
    expect(() => new Database(copy, { migrations })).toThrow(
      expect.objectContaining({
        code: "unavailable",
        hint: expect.stringContaining("damaged"),
        subject: `database:${copy}`,
      }),
    )
    expect((await readFile(copy)).equals(damaged)).toBe(true)
  })

  test("a folder that is not there is unavailable, with a hint", () => {
    expect(() => new Database(folder.at("missing", "x.db"))).toThrow(
      expect.objectContaining({ code: "unavailable", hint: expect.stringContaining("folder") }),
    )
  })

  test("a folder that may not be written is unavailable", async () => {
    await using other = await TempFolder.make()
    await chmod(other.path, 0o555)
    const owner = process.geteuid?.() ?? 0
    // Root may write anywhere: the rule is tried as somebody else, who can reach the folder and may not write to it.
    if (owner === 0) process.seteuid?.(65_534)
    try {
      expect(() => new Database(other.at("x.db"), { migrations })).toThrow(code("unavailable"))
    } finally {
      if (owner === 0) process.seteuid?.(0)
      await chmod(other.path, 0o755)
    }
  })

  test("a file that may only be read is unavailable when it is opened, with a hint, not at the first write", async () => {
    await using other = await TempFolder.make()
    const file = other.at("x.db")
    new Database(file, { migrations }).close()
    await chmod(file, 0o444)
    await chmod(other.path, 0o555)
    const owner = process.geteuid?.() ?? 0
    if (owner === 0) process.seteuid?.(65_534)
    try {
      expect(() => new Database(file, { migrations })).toThrow(
        expect.objectContaining({ code: "unavailable", hint: expect.stringContaining("written") }),
      )
    } finally {
      if (owner === 0) process.seteuid?.(0)
      await chmod(other.path, 0o755)
    }
  })

  test("a disk that is full is a limit, and what was there stays", () => {
    add("a")
    const pages = database.get("PRAGMA page_count", [], (row) => Number(row["page_count"])) ?? 0
    database.script(`PRAGMA max_page_count = ${pages}`)
    expect(() => database.transaction(() => add("x".repeat(1_000_000)))).toThrow(code("limit"))
    expect(texts()).toEqual(["a"])
  })
})
