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

/** `where`: a `postgres://` address, or the path of a SQLite file. `who`: which control plane this is, of those on one PostgreSQL. */
export async function openStore(where: string, who: string): Promise<Store> {
  const isShared = /^postgres(ql)?:\/\//.test(where)
  // A file has one control plane, whatever it is called.
  const store = isShared ? storeOn(await openPostgres(where), who) : storeOn(openSqlite(where))
  // What is being made by us was begun before we died, and would keep whoever asks again waiting.
  await store.made.forgetUnfinished()
  return store
}

export function storeOn(sql: Sql, who = ""): Store {
  return {
    users: new Users(sql),
    tokens: new Tokens(sql),
    signIns: new SignIns(sql),
    invites: new Invites(sql),
    audit: new AuditRows(sql),
    sessionOwners: new SessionOwners(sql),
    made: new Made(sql, who),
    get version() {
      return sql.version
    },
    [Symbol.asyncDispose]: () => sql[Symbol.asyncDispose](),
  }
}
