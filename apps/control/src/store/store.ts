import { AuditRows } from "./audit-rows.ts"
import { Invites } from "./invites.ts"
import { Made } from "./made.ts"
import { openPostgres } from "./postgres.ts"
import { SessionOwners } from "./session-owners.ts"
import { SignIns } from "./sign-ins.ts"
import type { Sql } from "./sql.ts"
import { openSqlite } from "./sqlite.ts"
import { Tokens } from "./tokens.ts"
import { Users } from "./users.ts"

/** What the control plane remembers: who may. */
export interface Store extends AsyncDisposable, Pick<Sql, "version"> {
  readonly users: Users
  readonly tokens: Tokens
  readonly signIns: SignIns
  readonly invites: Invites
  readonly audit: AuditRows
  readonly sessionOwners: SessionOwners
  readonly made: Made
}

/** `where`: a `postgres://` address, or the path of a SQLite file. */
export async function openStore(where: string): Promise<Store> {
  if (/^postgres(ql)?:\/\//.test(where)) return storeOn(await openPostgres(where))
  const store = storeOn(openSqlite(where))
  // A file has one control plane: what is being made there was begun by one that has died, and would keep others waiting.
  await store.made.forgetUnfinished()
  return store
}

export function storeOn(sql: Sql): Store {
  return {
    users: new Users(sql),
    tokens: new Tokens(sql),
    signIns: new SignIns(sql),
    invites: new Invites(sql),
    audit: new AuditRows(sql),
    sessionOwners: new SessionOwners(sql),
    made: new Made(sql),
    get version() {
      return sql.version
    },
    [Symbol.asyncDispose]: () => sql[Symbol.asyncDispose](),
  }
}
