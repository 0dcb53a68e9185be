import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { bundleProgram, Program } from "../testing/program.ts"
import { TempFolder } from "../testing/temp-folder.ts"
import { Database } from "./database.ts"
import type { Migration } from "./migrations.ts"

const notes: Migration = {
  name: "notes",
  sql: "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;",
}
const tags: Migration = {
  name: "tags",
  sql: "ALTER TABLE notes ADD COLUMN tag TEXT; CREATE INDEX by_tag ON notes (tag);",
}

let folder: TempFolder
beforeAll(async () => void (folder = await TempFolder.make()))
afterAll(() => folder[Symbol.asyncDispose]())

const open = (name: string, migrations: readonly Migration[]): Database =>
  new Database(folder.at(name), { migrations, now: () => 1_234 })
const applied = (database: Database): unknown[] =>
  database.all("SELECT version, name, applied_at FROM schema_migrations ORDER BY version", [], (row) =>
    Object.values(row),
  )
const tables = (database: Database): unknown[] =>
  database.all("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name", [], (row) => row["name"])

describe("migrations", () => {
  test("make a new database, and are noted", () => {
    using database = open("fresh.db", [notes, tags])
    expect(applied(database)).toEqual([
      [1, "notes", 1_234],
      [2, "tags", 1_234],
    ])
    expect(database.run("INSERT INTO notes (text, tag) VALUES (?, ?)", ["a", "b"])).toBe(1)
  })

  test("add only what is missing, and keep what is there", () => {
    {
      using old = open("upgrade.db", [notes])
      old.run("INSERT INTO notes (text) VALUES (?)", ["kept"])
    }
    using database = open("upgrade.db", [notes, tags])
    expect(applied(database).length).toBe(2)
    expect(database.all("SELECT text, tag FROM notes", [], (row) => row)).toEqual([{ text: "kept", tag: null }])
    using again = open("upgrade.db", [notes, tags])
    expect(applied(again).length).toBe(2)
  })

  test("that changed after they were applied are refused, and nothing is changed", () => {
    open("changed.db", [notes]).close()
    const changed = { ...notes, sql: `${notes.sql} CREATE TABLE other (a INTEGER) STRICT;` }
    expect(() => open("changed.db", [changed, tags])).toThrow(
      expect.objectContaining({ code: "conflict", message: expect.stringContaining("migration 1 (notes)") }),
    )
    using database = open("changed.db", [notes])
    expect(tables(database)).toEqual(["notes", "schema_migrations"])
  })

  test("of a newer Warren are refused by an older one, with a hint", () => {
    open("newer.db", [notes, tags]).close()
    expect(() => open("newer.db", [notes])).toThrow(
      expect.objectContaining({
        code: "conflict",
        message: expect.stringMatching(/version 2.* knows 1/),
        hint: expect.any(String),
      }),
    )
  })

  test("that fail leave nothing of themselves, and what came before stays", () => {
    const broken = {
      name: "broken",
      sql: "CREATE TABLE half (a INTEGER) STRICT; INSERT INTO notes (nonsense) VALUES (1);",
    }
    expect(() => open("failing.db", [notes, broken, tags])).toThrow(/nonsense/)
    using database = open("failing.db", [notes])
    expect(tables(database)).toEqual(["notes", "schema_migrations"])
    expect(applied(database)).toEqual([[1, "notes", 1_234]])
  })

  test("run once when several processes open a new database at once", async () => {
    const program = await bundleProgram(new URL("../../fixtures/opener.ts", import.meta.url), folder)
    for (let round = 0; round < 8; round++) {
      const openers = Array.from({ length: 3 }, () => new Program(program, [folder.at(`race-${round}.db`), "5"]))
      try {
        await Promise.all(openers.map(async (opener) => expect(await opener.line()).toBe("ready")))
        for (const opener of openers) opener.say("go")
        expect(await Promise.all(openers.map((opener) => opener.line()))).toEqual(openers.map(() => "1,1,1,1,1"))
      } finally {
        for (const opener of openers) await opener[Symbol.asyncDispose]()
      }
    }
  })
})
