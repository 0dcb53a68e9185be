import type { Clock } from "@warren/base/clock.ts"
import { failpoint } from "@warren/base/failpoint.ts"
import { Fault, messageOf } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import type { Database } from "@warren/base/sqlite/database.ts"
import type { Migration } from "@warren/base/sqlite/migrations.ts"
import type { Row } from "@warren/base/sqlite/value.ts"
import type { Secret, secretCalls } from "@warren/protocol/user-plane/secrets.ts"
import type { Handlers } from "@warren/protocol/contract.ts"
import type { z } from "zod"
import { pageOf } from "../page.ts"
import { KeyRing, readKeyRing } from "./key-ring.ts"

type SecretData = z.output<typeof Secret>

export const vaultMigrations: readonly Migration[] = [
  {
    name: "vault-secrets",
    sql: `CREATE TABLE secrets (
      name TEXT PRIMARY KEY, sealed BLOB NOT NULL, key_id TEXT NOT NULL,
      created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, used_at INTEGER) STRICT, WITHOUT ROWID`,
  },
]

const secretsMax = 1_000

interface VaultOptions {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  /** Outside of the database, so that a copy of one is worth nothing without the other. */
  readonly keyFile: string
}

/**
 * Secrets, sealed at rest. Through the API they only go in; what comes out (`reveal`) stays in this process, on its way to the
 * broker or a command's environment, and is noted by name.
 */
export class Vault {
  readonly #database: Database
  readonly #clock: Clock
  readonly #log: Log
  readonly #keyFile: string
  #ring: KeyRing

  private constructor(options: VaultOptions, ring: KeyRing) {
    this.#database = options.database
    this.#clock = options.clock
    this.#log = options.log
    this.#keyFile = options.keyFile
    this.#ring = ring
  }

  /** Makes the key if there is none, and ends a change of keys that was cut off. */
  static async open(options: VaultOptions): Promise<Vault> {
    const found = await readKeyRing(options.keyFile)
    const vault = new Vault(options, found ?? KeyRing.make())
    if (found && found.size > 1) await vault.#finishRotation()
    if (!found) await vault.#begin()
    return vault
  }

  set(name: string, value: string): SecretData {
    const { current } = this.#ring
    const now = this.#clock.now()
    return this.#database.transaction(() => {
      if (!this.#find(name) && this.#count() >= secretsMax)
        throw new Fault("limit", `there are ${secretsMax} secrets already`, { hint: "delete some" })
      this.#database.run(
        `INSERT INTO secrets (name, sealed, key_id, created_at, updated_at) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, key_id = excluded.key_id, updated_at = excluded.updated_at`,
        [name, this.#ring.seal(value, name), current, now, now],
      )
      return this.#find(name) as SecretData
    })
  }

  /** By name, those after `after`. */
  list(after: string, limit: number): SecretData[] {
    const sql = "SELECT * FROM secrets WHERE name > ? ORDER BY name LIMIT ?"
    return this.#database.all(sql, [after, limit], secretOf)
  }

  delete(name: string): boolean {
    return this.#database.run("DELETE FROM secrets WHERE name = ?", [name]) > 0
  }

  /** The value. For the broker and for environments, never for an answer; `use` says in the log what it is for. */
  reveal(name: string, use: string): string {
    const row = this.#database.get("SELECT * FROM secrets WHERE name = ?", [name], (found) => found)
    if (!row)
      throw new Fault("not_found", `there is no secret ${name}`, {
        subject: `secret:${name}`,
        hint: `warren secrets set ${name}`,
      })
    const value = this.#ring.open(row["sealed"] as Buffer, String(row["key_id"]), name)
    this.#database.run("UPDATE secrets SET used_at = ? WHERE name = ?", [this.#clock.now(), name])
    this.#log("info", "secrets.reveal", { secret: name, use })
    return value
  }

  /**
   * Seals everything with a new key and forgets the old one. Both keys are in the file until every row has changed, so that it
   * may be killed at any moment.
   */
  async rotate(): Promise<void> {
    const extended = this.#ring.extended()
    await extended.write(this.#keyFile)
    this.#ring = extended
    await this.#finishRotation()
  }

  async #finishRotation(): Promise<void> {
    const ring = this.#ring
    const count = this.#database.transaction(() => {
      const rows = this.#database.all("SELECT * FROM secrets WHERE key_id <> ?", [ring.current], (row) => row)
      for (const row of rows) this.#reseal(ring, row)
      return rows.length
    })
    const reduced = ring.reduced()
    await reduced.write(this.#keyFile)
    this.#ring = reduced
    this.#log("info", "secrets.rotate", { secrets: count })
  }

  /** One that was tampered with opens with no key: it must not stand in the way of the others. */
  #reseal(ring: KeyRing, row: Row): void {
    const name = String(row["name"])
    try {
      const value = ring.open(row["sealed"] as Buffer, String(row["key_id"]), name)
      const sealed = ring.seal(value, name)
      this.#database.run("UPDATE secrets SET sealed = ?, key_id = ? WHERE name = ?", [sealed, ring.current, name])
    } catch (thrown) {
      this.#log("error", "secrets.rotate", { secret: name, message: messageOf(thrown) })
    }
  }

  /** A new key over secrets of an old one would make their loss look like an empty vault. */
  async #begin(): Promise<void> {
    if (this.#count() > 0) {
      throw new Fault("unavailable", "the vault's key file is missing, and there are secrets sealed with it", {
        hint: "restore the key file from a backup",
        subject: `file:${this.#keyFile}`,
      })
    }
    await this.#ring.write(this.#keyFile)
  }

  #find(name: string): SecretData | undefined {
    return this.#database.get("SELECT * FROM secrets WHERE name = ?", [name], secretOf)
  }

  #count(): number {
    return this.#database.get("SELECT count(*) AS n FROM secrets", [], (row) => Number(row["n"])) ?? 0
  }
}

function secretOf(row: Row): SecretData {
  return {
    name: String(row["name"]),
    createdAt: new Date(Number(row["created_at"])).toISOString(),
    updatedAt: new Date(Number(row["updated_at"])).toISOString(),
    ...(row["used_at"] === null ? {} : { usedAt: new Date(Number(row["used_at"])).toISOString() }),
  }
}

export function secretHandlers(vault: Vault): Handlers<typeof secretCalls> {
  return {
    "secrets.set": async ({ name, value }) => {
      const secret = vault.set(name, value)
      failpoint("secret/set")
      return secret
    },
    "secrets.list": async ({ cursor, limit }) => pageOf(vault.list(cursor ?? "", limit + 1), limit, ({ name }) => name),
    "secrets.delete": async ({ name }) => ({ isDeleted: vault.delete(name) }),
  }
}
