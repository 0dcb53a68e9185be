import { createHmac, type KeyObject } from "node:crypto"
import { join } from "node:path"
import type { Clock } from "@warren/base/clock.ts"
import type { Log } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { controlPlane as controlCalls, type ControlPlane } from "@warren/protocol/control-plane.ts"
import { HttpDoor } from "@warren/mcp/http-door.ts"
import { StatementSigner } from "@warren/protocol/statement.ts"
import { userPlane, type UserPlane } from "@warren/protocol/user-plane.ts"
import { AuditLog } from "./audit/audit-log.ts"
import { AuditHead } from "./audit/head.ts"
import { Buckets } from "./buckets.ts"
import { accountDesk } from "./desks/account-desk.ts"
import { auditDesk } from "./desks/audit-desk.ts"
import { gatewayDesk } from "./desks/gateway-desk.ts"
import { InviteDesk } from "./desks/invite-desk.ts"
import { tokenDesk } from "./desks/token-desk.ts"
import { userDesk } from "./desks/user-desk.ts"
import { Gate } from "./gate.ts"
import { Ownership } from "./gateway/ownership.ts"
import { pageAt } from "./gateway/page-at.ts"
import { Cookies } from "./login/cookie.ts"
import { Doorman } from "./login/doorman.ts"
import { Identity } from "./login/identity.ts"
import { LastUse } from "./login/last-use.ts"
import { Oidc, type OidcSettings } from "./login/oidc.ts"
import { Passwords } from "./login/password.ts"
import { Seal } from "./login/seal.ts"
import { onceEach } from "./once.ts"
import { ensureOwner } from "./owner.ts"
import { hashOf } from "./secret.ts"
import { needed, routesOf } from "./runners/routes.ts"
import { Runners, type RunnerRoute } from "./runners/runners.ts"
import { nameOf, openSigningKey } from "./signing-key.ts"
import { openStore, type Store } from "./store/store.ts"
import type { UserRow } from "./store/users.ts"
import { openToken } from "./token.ts"
import { Watch } from "./watch.ts"

export interface ControlOptions {
  /** Where its key, its token and, unless said otherwise, its database lie. */
  readonly folder: string
  /** A SQLite file, or `postgres://…`. */
  readonly database: string
  readonly publicUrl: URL
  /** Previews are at names below it; empty where there are none. */
  readonly gatewayDomain?: string
  /** Whose machine this is, when it is one person's. */
  readonly owner: { readonly name: string; readonly socket: string; readonly uid: number } | undefined
  /** Where runners are found, with `{user}` for the name; empty: only where an admin says. */
  readonly runners: string
  readonly requestsPerMinute: number
  readonly auditMax: number
  readonly oidc: OidcSettings | undefined
  readonly clock: Clock
  readonly log: Log
}

/** Everything of a control plane but the door. */
export interface Control extends AsyncDisposable {
  readonly store: Store
  readonly audit: AuditLog
  readonly watch: Watch
  readonly lastUse: LastUse
  readonly gate: Gate
  readonly identity: Identity
  readonly cookies: Cookies
  readonly doorman: Doorman
  readonly invites: InviteDesk
  readonly oidc: Oidc | undefined
  readonly controlPlane: ControlPlane
  readonly userPlane: UserPlane
  readonly ownership: Ownership
  /** Also where the page is. */
  readonly alsoPage: URL | undefined
  /** The public half of what tokens for gateways are signed with. */
  readonly gatewayKey: KeyObject
  routeOf(user: UserRow): Promise<RunnerRoute>
  /** For tokens of clients of E2B: nothing of them is kept. */
  readonly e2bSecret: Buffer
  /** Behind the gate, like every other door. */
  readonly mcp: HttpDoor
}

/** What the runner takes for a user whose quota says nothing. */
const sessionsMaxShown = 2_000

export async function openControl(options: ControlOptions): Promise<Control> {
  const { folder, clock, log, publicUrl } = options
  await using scope = new Scope()
  const key = await openSigningKey(folder)
  const store = scope.use(await openStore(options.database, nameOf(key.publicKey)))
  const head = new AuditHead(join(folder, "audit.head"), key)
  const audit = scope.use(new AuditLog({ rows: store.audit, key, head, clock, log, entriesMax: options.auditMax }))
  const [buckets, cookies, passwords] = [new Buckets(clock), new Cookies(publicUrl), new Passwords()]
  const lastUse = scope.use(new LastUse(store, clock, log))
  const { owner, requestsPerMinute } = options
  const tokenFile = owner && {
    hash: hashOf(await openToken(join(folder, "token"))),
    userId: await ensureOwner(store, owner, clock),
  }
  const { origin } = publicUrl
  const { gatewayDomain = "" } = options
  const alsoPage = pageAt(publicUrl, gatewayDomain)
  const alsoOrigin = alsoPage?.origin
  const identity = new Identity({ store, cookies, origin, alsoOrigin, tokenFile, requestsPerMinute, lastUse, clock })
  const watch = scope.use(new Watch((principal) => identity.isStill(principal), log))
  const gate = new Gate({ audit, buckets, watch })
  const doorman = new Doorman({ store, cookies, passwords, buckets, clock })
  const invites = new InviteDesk({ store, doorman, passwords, clock, origin })
  const findRoute = routesOf(store.users, options.runners)
  const routeOf = needed(findRoute)
  const signer = new StatementSigner(key.privateKey, () => clock.now())
  const ownership = scope.use(new Ownership(store, clock, log))
  const learn = (call: string, user: string, answer: unknown): void => ownership.learn(call, user, answer)
  const runners = scope.use(new Runners(routeOf, signer, clock, learn))
  const seal = new Seal(key.privateKey.export({ type: "pkcs8", format: "der" }))
  const oidc = options.oidc && new Oidc({ settings: options.oidc, origin, users: store.users, seal, clock })
  const defaults = { sessionsMax: sessionsMaxShown, requestsPerMinute }
  const desks: ControlPlane = {
    ...accountDesk({ store, doorman, passwords, cookies, watch, clock, hasOidc: oidc !== undefined }),
    ...tokenDesk(store, watch, clock),
    ...userDesk({ store, invites, watch, clock, defaults, findRoute }),
    ...auditDesk(audit),
    ...gatewayDesk(runners.handlers(), key, gatewayDomain, clock),
  }
  const controlPlane = onceEach(controlCalls, desks, { made: store.made, seal, clock })
  const plane = gate.guard(userPlane, runners.handlers())
  const mcp = scope.use(new HttpDoor({ plane, log, clock, urlOf: (path) => new URL(path, publicUrl).href }))
  const e2bSecret = createHmac("sha256", key.privateKey.export({ type: "pkcs8", format: "der" }))
  const owned = scope.move()
  const parts = { store, audit, watch, lastUse, gate, identity, cookies, doorman, invites, oidc, controlPlane, mcp }
  const gateway = { ownership, alsoPage, gatewayKey: key.publicKey, routeOf }
  return {
    ...parts,
    ...gateway,
    userPlane: runners.handlers(),
    e2bSecret: e2bSecret.update("e2b").digest(),
    [Symbol.asyncDispose]: () => owned.close(),
  }
}
