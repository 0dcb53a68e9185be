import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import type { Database } from "@warren/base/sqlite/database.ts"
import type { Migration } from "@warren/base/sqlite/migrations.ts"
import type { Bindable, Row } from "@warren/base/sqlite/value.ts"
import type { Memory as MemorySchema } from "@warren/protocol/user-plane/memory.ts"
import type { z } from "zod"

export type MemoryData = z.output<typeof MemorySchema>

/**
 * Vectors are searched one by one: exact, 3 µs each at 768 dimensions. The index that libsql offers took 4 ms and 24 KB for each
 * memory when it was tried, and missed the nearest.
 */
export const memoryMigrations: readonly Migration[] = [
  {
    name: "memories",
    sql: `CREATE TABLE memories (
        n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, text TEXT NOT NULL, source TEXT, session_id TEXT,
        created_at INTEGER NOT NULL) STRICT;
      CREATE TABLE memory_tags (
        tag TEXT NOT NULL, memory_n INTEGER NOT NULL REFERENCES memories (n) ON DELETE CASCADE,
        PRIMARY KEY (tag, memory_n)) STRICT, WITHOUT ROWID;
      CREATE INDEX memory_tags_by_memory ON memory_tags (memory_n);
      CREATE TABLE memory_vectors (
        memory_n INTEGER PRIMARY KEY REFERENCES memories (n) ON DELETE CASCADE, model TEXT NOT NULL, vector BLOB) STRICT;
      CREATE VIRTUAL TABLE memory_words USING fts5 (text, tags, tokenize = 'porter unicode61 remove_diacritics 2');`,
  },
]

const memoriesMax = 20_000
const wordsMax = 32
const snippetWords = 24

export interface NewMemory {
  readonly text: string
  readonly tags: readonly string[]
  readonly source?: string | undefined
  readonly sessionId?: string | undefined
}

/** Found, best first. */
export interface Found {
  readonly n: number
  readonly snippet?: string
}

/** Memories on disk, with what is needed to find them. */
export class Memories {
  readonly #database: Database
  readonly #clock: Clock

  constructor(database: Database, clock: Clock) {
    this.#database = database
    this.#clock = clock
  }

  add(memory: NewMemory): MemoryData {
    const id = newId("mem")
    const tags = [...new Set(memory.tags)]
    return this.#database.transaction(() => {
      this.#checkRoom()
      const n = this.#database.get(
        "INSERT INTO memories (id, text, source, session_id, created_at) VALUES (?, ?, ?, ?, ?) RETURNING n",
        [id, memory.text, memory.source ?? null, memory.sessionId ?? null, this.#clock.now()],
        (row) => Number(row["n"]),
      ) as number
      for (const tag of tags) this.#database.run("INSERT INTO memory_tags (tag, memory_n) VALUES (?, ?)", [tag, n])
      this.#database.run("INSERT INTO memory_words (rowid, text, tags) VALUES (?, ?, ?)", [
        n,
        memory.text,
        tags.join(" "),
      ])
      return this.get(id)
    })
  }

  get(id: string): MemoryData {
    const memory = this.#database.get(`${select} WHERE m.id = ?`, [id], memoryOf)
    if (!memory) throw new Fault("not_found", `there is no memory ${id}`, { subject: `memory:${id}` })
    return memory
  }

  delete(id: string): boolean {
    return this.#database.transaction(() => {
      const n = this.#database.get("DELETE FROM memories WHERE id = ? RETURNING n", [id], (row) => Number(row["n"]))
      if (n === undefined) return false
      this.#database.run("DELETE FROM memory_words WHERE rowid = ?", [n])
      return true
    })
  }

  /** The newest first; with their numbers, to go on from. */
  list(limit: number, before: number, tag?: string): { n: number; memory: MemoryData }[] {
    const { sql, values } = tagged(tag)
    const read = (row: Row) => ({ n: Number(row["n"]), memory: memoryOf(row) })
    return this.#database.all(
      `${select} WHERE m.n < ? ${sql} ORDER BY m.n DESC LIMIT ?`,
      [before, ...values, limit],
      read,
    )
  }

  byNumbers(numbers: readonly number[]): Map<number, MemoryData> {
    const sql = `${select} WHERE m.n IN (SELECT value FROM json_each(?))`
    const rows = this.#database.all(sql, [JSON.stringify(numbers)], (row) => [Number(row["n"]), memoryOf(row)] as const)
    return new Map(rows)
  }

  /** By words, any of them; those with more and rarer ones first. */
  findWords(query: string, limit: number, tag?: string): Found[] {
    const match = matchOf(query)
    if (match === "") return []
    const { sql, values } = tagged(tag)
    return this.#database.all(
      `SELECT m.n, snippet(memory_words, 0, '', '', '…', ${snippetWords}) AS snippet
       FROM memory_words JOIN memories m ON m.n = memory_words.rowid
       WHERE memory_words MATCH ? ${sql} ORDER BY memory_words.rank, m.n DESC LIMIT ?`,
      [match, ...values, limit],
      (row) => ({ n: Number(row["n"]), snippet: String(row["snippet"]) }),
    )
  }

  findVector(vector: Uint8Array, model: string, limit: number, tag?: string): Found[] {
    const { sql, values } = tagged(tag)
    return this.#database.all(
      `SELECT m.n FROM memory_vectors v JOIN memories m ON m.n = v.memory_n
       WHERE v.model = ? AND v.vector IS NOT NULL ${sql} ORDER BY vector_distance_cos(v.vector, ?), m.n DESC LIMIT ?`,
      [model, ...values, vector, limit],
      (row) => ({ n: Number(row["n"]) }),
    )
  }

  /** Those that have no vector of this model yet, the oldest first. */
  withoutVector(model: string, limit: number): { n: number; text: string }[] {
    return this.#database.all(
      `SELECT m.n, m.text FROM memories m LEFT JOIN memory_vectors v ON v.memory_n = m.n AND v.model = ?
       WHERE v.memory_n IS NULL ORDER BY m.n LIMIT ?`,
      [model, limit],
      (row) => ({ n: Number(row["n"]), text: String(row["text"]) }),
    )
  }

  /** `undefined`: there is none to be had, so it is not asked for again. A memory that was deleted meanwhile stays so. */
  setVectors(model: string, vectors: readonly { readonly n: number; readonly vector: Uint8Array | undefined }[]): void {
    this.#database.transaction(() => {
      for (const { n, vector } of vectors) {
        this.#database.run(
          `INSERT INTO memory_vectors (memory_n, model, vector) SELECT n, ?, ? FROM memories WHERE n = ?
           ON CONFLICT (memory_n) DO UPDATE SET model = excluded.model, vector = excluded.vector`,
          [model, vector ?? null, n],
        )
      }
    })
  }

  #checkRoom(): void {
    const count = this.#database.get("SELECT count(*) AS n FROM memories", [], (row) => Number(row["n"])) ?? 0
    if (count >= memoriesMax)
      throw new Fault("limit", `there are ${memoriesMax} memories already`, { hint: "delete some" })
  }
}

const select = `SELECT m.*, v.vector IS NOT NULL AS is_embedded,
  (SELECT json_group_array(tag) FROM memory_tags WHERE memory_n = m.n) AS tags
  FROM memories m LEFT JOIN memory_vectors v ON v.memory_n = m.n`

function tagged(tag: string | undefined): { sql: string; values: Bindable[] } {
  if (tag === undefined) return { sql: "", values: [] }
  return { sql: "AND m.n IN (SELECT memory_n FROM memory_tags WHERE tag = ?)", values: [tag] }
}

/** Somebody's text as words to look for: each in quotes, so that nothing in it is syntax. */
function matchOf(query: string): string {
  const words = query.normalize("NFC").match(/[\p{L}\p{N}\p{M}]+/gu) ?? []
  return [...new Set(words)]
    .slice(0, wordsMax)
    .map((word) => `"${word}"`)
    .join(" OR ")
}

function memoryOf(row: Row): MemoryData {
  return {
    id: String(row["id"]),
    text: String(row["text"]),
    tags: JSON.parse(String(row["tags"])) as string[],
    ...(row["source"] === null ? {} : { source: String(row["source"]) }),
    ...(row["session_id"] === null ? {} : { sessionId: String(row["session_id"]) }),
    createdAt: new Date(Number(row["created_at"])).toISOString(),
    isEmbedded: row["is_embedded"] === 1,
  }
}
