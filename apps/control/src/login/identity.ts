import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import type { Statement } from "@warren/protocol/statement.ts"
import { TokenScope } from "@warren/protocol/token-scope.ts"
import { hashOf, isSame } from "../secret.ts"
import type { SignInRow } from "../store/sign-ins.ts"
import type { Store } from "../store/store.ts"
import type { Bearer, TokenRow } from "../store/tokens.ts"
import type { Principal } from "../visit.ts"
import type { Cookies } from "./cookie.ts"
import { Found } from "./found.ts"
import type { LastUse } from "./last-use.ts"

export const signInLimits = {
  lifeMs: 30 * 24 * 3600_000,
  /** Unused for this long, it is over. */
  idleMs: 7 * 24 * 3600_000,
  perUserMax: 50,
} as const

const forAdmins = new Set<TokenScope>(["admin", "metrics:read"])
const all: ReadonlySet<TokenScope> = new Set(TokenScope.options)
const secretCharsMax = 128
const ownerVia = "token-file"

interface IdentityParts {
  readonly store: Store
  readonly cookies: Cookies
  readonly origin: string
  /** Another name of the same page, on one's own machine. */
  readonly alsoOrigin?: string | undefined
  /** Of the machine's own user, where there is one. */
  readonly tokenFile: { readonly hash: string; readonly userId: string } | undefined
  readonly requestsPerMinute: number
  readonly lastUse: LastUse
  readonly clock: Clock
}

/** Finds out who is asking, from a token or a cookie and nothing else. */
export class Identity {
  readonly #parts: IdentityParts
  readonly #found: Found

  constructor(parts: IdentityParts) {
    this.#parts = parts
    this.#found = new Found(parts.store)
  }

  /** Undefined when nothing was shown; throws when what was shown does not count. */
  async of(request: Request): Promise<Principal | undefined> {
    const authorization = request.headers.get("authorization")
    if (authorization !== null) return this.#bearer(authorization)
    const cookie = this.#parts.cookies.read(request, "sign-in")
    if (cookie === undefined || cookie === "") return undefined
    this.#checkOrigin(request)
    const found = await this.#signIn(hashOf(cookie))
    if (!found) throw refused()
    return found
  }

  /** Whether what was shown for a request that is still going on counts now. */
  async isStill({ via, hash, user }: Principal): Promise<boolean> {
    if (via === "token") return (await this.#token(hash)) !== undefined
    if (via === "sign-in") return (await this.#signIn(hash)) !== undefined
    return (await this.#owner(user.id)) !== undefined
  }

  /** By the id of a sign-in or token, if it counts and is this user's: for a browser at a name that its cookie is not sent to. */
  async ofVia(id: string, userId: string): Promise<Principal | undefined> {
    const isSignIn = id.startsWith("sin_")
    const row = isSignIn ? await this.#parts.store.signIns.byId(id) : undefined
    const found = isSignIn ? row && (await this.#signIn(row.hash)) : await this.ofTokenId(id === ownerVia ? "" : id)
    return found?.user.id === userId ? found : undefined
  }

  /** By the id of a token: for what was begun with it and goes on without showing it. */
  async ofTokenId(id: string): Promise<Principal | undefined> {
    const { tokenFile, store } = this.#parts
    if (id === "") return tokenFile && this.#owner(tokenFile.userId)
    const row = await store.tokens.byId(id)
    return row && this.#token(row.hash)
  }

  async #bearer(authorization: string): Promise<Principal> {
    const [scheme = "", token = "", ...rest] = authorization.split(" ")
    if (scheme.toLowerCase() !== "bearer" || rest.length > 0) throw refused()
    return this.ofToken(token)
  }

  /** Whoever has this token; throws when nobody has. */
  async ofToken(token: string): Promise<Principal> {
    if (token.length > secretCharsMax) throw refused()
    const { tokenFile } = this.#parts
    const hash = hashOf(token)
    const isOwner = tokenFile !== undefined && isSame(hash, tokenFile.hash)
    const found = isOwner ? await this.#owner(tokenFile.userId) : await this.#token(hash)
    if (!found) throw refused()
    return found
  }

  async #owner(userId: string): Promise<Principal | undefined> {
    const found = await this.#found.of("owner", this.#parts.clock.now(), async () => {
      const user = await this.#parts.store.users.byId(userId)
      if (!user || user.isDisabled) return undefined
      const quota = await this.#parts.store.users.quotaOf(userId)
      const shown = { via: "token-file", viaId: ownerVia, hash: "", scopes: all } as const
      return { principal: this.#principal({ user, quota }, shown), overAt: Number.POSITIVE_INFINITY, usedAt: undefined }
    })
    return found?.principal
  }

  async #token(hash: string): Promise<Principal | undefined> {
    const found = await this.#found.of(`token ${hash}`, this.#parts.clock.now(), async () => {
      const row = await this.#parts.store.tokens.byHash(hash)
      if (!row || row.bearer.user.isDisabled) return undefined
      const { token, bearer } = row
      const scopes = new Set(token.scopes.split(" ").filter(isScope))
      const principal = this.#principal(bearer, { via: "token", viaId: token.id, hash, scopes }, token)
      return { principal, overAt: token.expiresAt ?? Number.POSITIVE_INFINITY, usedAt: token.usedAt }
    })
    if (found) this.#parts.lastUse.note("token", found.principal.viaId, found.usedAt)
    return found?.principal
  }

  async #signIn(hash: string): Promise<Principal | undefined> {
    const found = await this.#found.of(`sign-in ${hash}`, this.#parts.clock.now(), async () => {
      const row = await this.#parts.store.signIns.byHash(hash)
      if (!row || row.bearer.user.isDisabled) return undefined
      const { signIn, bearer } = row
      const principal = this.#principal(bearer, { via: "sign-in", viaId: signIn.id, hash, scopes: all })
      return { principal, overAt: overAt(signIn), usedAt: signIn.usedAt }
    })
    if (found) this.#parts.lastUse.note("sign-in", found.principal.viaId, found.usedAt)
    return found?.principal
  }

  #principal(
    { user, quota }: Bearer,
    shown: Pick<Principal, "via" | "viaId" | "hash" | "scopes">,
    token?: TokenRow,
  ): Principal {
    // Looked at each time, so that somebody who is no admin any more has lost it at once.
    const scopes =
      user.role === "admin" ? shown.scopes : new Set([...shown.scopes].filter((scope) => !forAdmins.has(scope)))
    const requestsPerMinute = {
      user: quota.requestsPerMinute ?? this.#parts.requestsPerMinute,
      token: token?.requestsPerMinute,
    }
    return { ...shown, user, scopes, limits: limitsOf(quota, token), requestsPerMinute }
  }

  /**
   * A browser sends a cookie along with whatever any page makes it send. What changes something, or opens a WebSocket, has
   * to come from a page of ours.
   */
  #checkOrigin(request: Request): void {
    const isSafe = /^(GET|HEAD|OPTIONS)$/.test(request.method) && request.headers.get("upgrade") === null
    const site = request.headers.get("sec-fetch-site")
    // A preview is of the same site: a picture whose address is one of ours would be asked for with the cookie.
    const isNear = site === null || site === "none"
    if (isSafe && (isNear || request.headers.get("sec-fetch-mode") === "navigate")) return
    const origin = request.headers.get("origin")
    const { origin: ours, alsoOrigin } = this.#parts
    const isOurs = origin === null ? site === "same-origin" : origin === ours || origin === alsoOrigin
    if (!isOurs) throw new Fault("forbidden", "requests from other sites are not served")
  }
}

function overAt({ expiresAt, usedAt }: SignInRow): number {
  return Math.min(expiresAt, usedAt + signInLimits.idleMs)
}

function isScope(text: string): text is TokenScope {
  return TokenScope.safeParse(text).success
}

function limitsOf({ sessionsMax }: Bearer["quota"], token: TokenRow | undefined): Statement["limits"] {
  const limits = {
    ...(sessionsMax === undefined ? {} : { sessionsMax }),
    ...(token?.namePrefix === undefined ? {} : { namePrefix: token.namePrefix }),
    ...(token?.sessionsMax === undefined ? {} : { prefixSessionsMax: token.sessionsMax }),
  }
  return Object.keys(limits).length === 0 ? undefined : limits
}

/** One answer for everything that is wrong with it. */
function refused(): Fault {
  return new Fault("unauthenticated", "a valid token is missing", { hint: "send Authorization: Bearer <token>" })
}
