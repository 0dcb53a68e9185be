import { createHash } from "node:crypto"
import { Fault } from "../fault.ts"
import type { Database } from "./database.ts"

/** One step of a schema. Steps are only ever added at the end; an old one never changes. */
export interface Migration {
  readonly name: string
  readonly sql: string
}

const ledger = `CREATE TABLE IF NOT EXISTS schema_migrations (
  version INTEGER PRIMARY KEY, name TEXT NOT NULL, digest TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT`

/** Brings the schema up to date, each step in a transaction of its own, and refuses a database it does not know. */
export function migrate(database: Database, migrations: readonly Migration[], now: () => number): void {
  database.transaction(() => database.run(ledger))
  // Changes nothing: a file that can only be read is refused now, and not half-way through the first thing somebody asks for.
  database.run("UPDATE schema_migrations SET name = name WHERE false")
  // Two processes may open a new database at once: whoever comes second finds the step taken.
  migrations.forEach((migration, index) => {
    database.transaction(() => apply(database, migration, index + 1, now))
  })
  const known = database.get("SELECT count(*) AS n FROM schema_migrations", [], (row) => Number(row["n"])) ?? 0
  if (known > migrations.length) {
    throw new Fault("conflict", `the database has schema version ${known}, this Warren knows ${migrations.length}`, {
      hint: "run the newer Warren that wrote it",
      subject: `database:${database.path}`,
    })
  }
}

function apply(database: Database, migration: Migration, version: number, now: () => number): void {
  const digest = createHash("sha256").update(migration.sql).digest("hex")
  const applied = database.get(
    "SELECT digest FROM schema_migrations WHERE version = ?",
    [version],
    (row) => row["digest"],
  )
  if (applied === digest) return
  if (applied !== undefined) {
    throw new Fault("conflict", `migration ${version} (${migration.name}) is not the one this database was made with`, {
      hint: "add a new migration instead of changing an old one",
      subject: `database:${database.path}`,
    })
  }
  database.script(migration.sql)
  const row = [version, migration.name, digest, now()]
  database.run("INSERT INTO schema_migrations (version, name, digest, applied_at) VALUES (?, ?, ?, ?)", row)
}
