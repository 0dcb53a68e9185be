import type { Database } from "@warren/base/sqlite/database.ts"
import type { Migration } from "@warren/base/sqlite/migrations.ts"
import type { Row } from "@warren/base/sqlite/value.ts"
import { Tunnel } from "@warren/protocol/user-plane/tunnels.ts"
import { labelOf, prefixOf } from "./address.ts"

export const tunnelMigrations: readonly Migration[] = [
  {
    name: "tunnels",
    sql: `CREATE TABLE tunnels (
        number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        name TEXT NOT NULL, port INTEGER NOT NULL, protocol TEXT NOT NULL, visibility TEXT NOT NULL,
        token_hash TEXT UNIQUE, created_at INTEGER NOT NULL, UNIQUE (session, name)) STRICT;`,
  },
]

/** A tunnel as it is written down. */
export interface TunnelRecord {
  readonly number: number
  readonly tunnel: Tunnel
  /** Of a link's token; the token itself is known to whoever was given it. */
  readonly tokenHash: string | undefined
}

/** Tunnels on disk. A session that is deleted takes its own along. */
export class TunnelStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  add({ tunnel, tokenHash }: Omit<TunnelRecord, "number">): void {
    this.#database.run(
      `INSERT INTO tunnels (id, session, name, port, protocol, visibility, token_hash, created_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      [
        ...[tunnel.id, tunnel.session, tunnel.name, tunnel.port, tunnel.protocol, tunnel.visibility],
        ...[tokenHash ?? null, Date.parse(tunnel.createdAt)],
      ],
    )
  }

  remove(id: string): void {
    this.#database.run("DELETE FROM tunnels WHERE id = ?", [id])
  }

  all(): TunnelRecord[] {
    return this.#database.all("SELECT * FROM tunnels ORDER BY number", [], recordOf)
  }

  find(session: string, name: string): TunnelRecord | undefined {
    return this.#database.get("SELECT * FROM tunnels WHERE session = ? AND name = ?", [session, name], recordOf)
  }
}

function recordOf(row: Row): TunnelRecord {
  const { session, name, token_hash: hash, created_at: createdAt, number, ...same } = row
  const tunnel = Tunnel.parse({
    ...same,
    ...{
      session,
      name,
      path: `${prefixOf(String(session), String(name))}/`,
      label: labelOf(String(session), String(name)),
    },
    createdAt: new Date(Number(createdAt)).toISOString(),
  })
  return { number: Number(number), tunnel, tokenHash: hash === null ? undefined : String(hash) }
}
