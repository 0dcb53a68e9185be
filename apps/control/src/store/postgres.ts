import { createHash } from "node:crypto"
import { errnoOf, Fault, messageOf } from "@warren/base/fault.ts"
import postgres from "postgres"
import { migrations } from "./schema.ts"
import type { Sql, SqlRow, SqlValue, Write } from "./sql.ts"

type Client = postgres.Sql<{ bigint: number }>
type Transaction = postgres.TransactionSql<{ bigint: number }>

const connectionsMax = 8
const connectS = 5
/** How often writes that met others' are tried. */
const triesMax = 10
/** Held while tables are made, so that of several that start at once one does it. Any number, but always this one. */
const migrationLock = 7_726_361

const text = (sql: string): string => {
  let number = 0
  return sql.replaceAll("?", () => `$${++number}`)
}
const ddl = (sql: string): string => sql.replaceAll(") STRICT", ")").replaceAll("INTEGER", "BIGINT")

/** The same tables in a PostgreSQL database, for control planes that outlive their machine. */
export async function openPostgres(url: string): Promise<Sql> {
  const { address, host } = placeOf(url)
  const client: Client = postgres(address, {
    ...(host === null ? {} : { host }),
    max: connectionsMax,
    connect_timeout: connectS,
    onnotice: () => undefined,
    types: { bigint: { to: 20, from: [20], parse: Number, serialize: String } },
  })
  try {
    await guard(() => client.begin((transaction) => migrate(transaction)))
  } catch (failure) {
    await client.end({ timeout: 1 })
    throw failure
  }
  return {
    version: undefined,
    all: (sql, values) => guard(async () => (await client.unsafe(text(sql), [...values])) as unknown as SqlRow[]),
    write: (...writes) => retried(() => client.begin("isolation level serializable", (on) => all(on, writes))),
    [Symbol.asyncDispose]: () => client.end({ timeout: connectS }),
  }
}

/** As libpq has it, a socket's folder is `?host=/run/postgresql`. */
function placeOf(url: string): { address: string; host: string | null } {
  const address = new URL(url)
  const host = address.searchParams.get("host")
  address.searchParams.delete("host")
  return { address: address.href, host }
}

async function all(transaction: Transaction, writes: readonly Write[]): Promise<readonly number[]> {
  const changed: number[] = []
  for (const { sql, values, rows } of writes) {
    const { count } = await transaction.unsafe(text(sql), [...(values as SqlValue[])])
    if (rows !== undefined && rows !== count) throw new Fault("conflict", "somebody else was faster")
    changed.push(count)
  }
  return changed
}

/** Of two that would get in each other's way PostgreSQL refuses one; that one did nothing and can simply try again. */
async function retried<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await guard(work)
    } catch (failure) {
      const isMet = failure instanceof Fault && /^40(001|P01)$/.test(errnoOf(failure.cause))
      if (!isMet || tries >= triesMax) throw failure
    }
  }
}

async function guard<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (thrown) {
    throw thrown instanceof Fault ? thrown : failure(thrown)
  }
}

function failure(cause: unknown): Fault {
  const code = errnoOf(cause)
  if (code.startsWith("23")) return new Fault("conflict", `could not write: ${messageOf(cause)}`, { cause })
  if (/^(40|53|57|08|28|3D|CONN|ECONN|ENOENT|ETIMEDOUT|ENOTFOUND|EHOST)/.test(code)) {
    return new Fault("unavailable", "the control plane's database does not answer", {
      cause,
      hint: "look at WARREN_DATABASE and at the database's own log",
    })
  }
  return new Fault("internal", `the control plane's database failed: ${messageOf(cause)}`, { cause })
}

const ledger = `CREATE TABLE IF NOT EXISTS schema_migrations (
  version BIGINT PRIMARY KEY, name TEXT NOT NULL CHECK (length(name) <= 64),
  digest TEXT NOT NULL CHECK (length(digest) = 64), applied_at BIGINT NOT NULL)`

async function migrate(transaction: Transaction): Promise<void> {
  await transaction.unsafe(`SELECT pg_advisory_xact_lock(${migrationLock})`)
  await transaction.unsafe(ledger)
  const applied = await transaction.unsafe("SELECT version, digest FROM schema_migrations ORDER BY version")
  if (applied.length > migrations.length) {
    throw new Fault(
      "conflict",
      `the database has schema version ${applied.length}, this Warren knows ${migrations.length}`,
    )
  }
  for (const [index, { name, sql }] of migrations.entries()) {
    const digest = createHash("sha256").update(sql).digest("hex")
    const known = applied[index]?.["digest"] as string | undefined
    if (known === digest) continue
    if (known !== undefined)
      throw new Fault("conflict", `migration ${index + 1} is not the one this database was made with`)
    await transaction.unsafe(ddl(sql))
    await transaction.unsafe("INSERT INTO schema_migrations VALUES ($1, $2, $3, $4)", [
      index + 1,
      name,
      digest,
      Date.now(),
    ])
  }
}
