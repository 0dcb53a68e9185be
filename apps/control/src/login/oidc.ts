import { createHash } from "node:crypto"
import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import * as oidc from "openid-client"
import { z } from "zod"
import type { Users, UserRow } from "../store/users.ts"
import type { Seal } from "./seal.ts"

export interface OidcSettings {
  readonly issuer: string
  readonly client: string
  readonly secret: string
  /** The claim that holds the user's name. */
  readonly nameClaim: string
}

/** How long somebody may take at the provider. */
export const oidcLimits = { lifeMs: 10 * 60_000, timeoutS: 10 } as const

const Pending = z.object({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  next: z.string(),
  expiresAt: z.int(),
})

interface OidcParts {
  readonly settings: OidcSettings
  readonly origin: string
  readonly users: Users
  readonly seal: Seal
  readonly clock: Clock
}

/** Signing in at an identity provider: authorization code with PKCE, state and nonce. */
export class Oidc {
  readonly #parts: OidcParts
  #config: Promise<oidc.Configuration> | undefined

  constructor(parts: OidcParts) {
    this.#parts = parts
  }

  /** Where the browser goes, and what it keeps meanwhile: sealed, so nothing has to be remembered here. */
  async begin(next: string): Promise<{ to: URL; kept: string }> {
    const config = await this.#discovered()
    const pending = {
      state: oidc.randomState(),
      nonce: oidc.randomNonce(),
      verifier: oidc.randomPKCECodeVerifier(),
      next: isOwnPlace(next) ? next : "/",
      expiresAt: this.#parts.clock.now() + oidcLimits.lifeMs,
    }
    const to = oidc.buildAuthorizationUrl(config, {
      redirect_uri: this.#callback().href,
      scope: "openid profile",
      code_challenge: await oidc.calculatePKCECodeChallenge(pending.verifier),
      code_challenge_method: "S256",
      state: pending.state,
      nonce: pending.nonce,
    })
    return { to, kept: this.#parts.seal.close(pending) }
  }

  /** Who came back, and where they wanted to go. */
  async end(query: URLSearchParams, kept: string | undefined): Promise<{ user: UserRow; next: string }> {
    const pending = Pending.safeParse(this.#parts.seal.open(kept ?? ""))
    if (!pending.success || pending.data.expiresAt <= this.#parts.clock.now()) throw refused()
    const { state, nonce, verifier, next } = pending.data
    const came = this.#callback()
    came.search = query.toString()
    const checks = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, idTokenExpected: true }
    const tokens = await oidc.authorizationCodeGrant(await this.#discovered(), came, checks).catch((cause: unknown) => {
      throw refused(cause)
    })
    const claims = tokens.claims()
    if (!claims) throw refused()
    return { user: await this.#userOf(claims), next }
  }

  /**
   * Whom the provider's subject belongs to. The first time, a user whom an admin has made with that name and who has no other way
   * to sign in: nobody comes into an account by calling themselves like it at the provider.
   */
  async #userOf(claims: oidc.IDToken): Promise<UserRow> {
    const { users, settings, clock } = this.#parts
    const subject = createHash("sha256").update(`${claims.iss}\n${claims.sub}`).digest("hex")
    const known = await users.byOidc(subject)
    if (known) return known
    const name = claims[settings.nameClaim]
    const user = typeof name === "string" ? await users.byName(name) : undefined
    if (!user || (await users.hasCredential(user.id))) throw refused()
    await users.linkOidc(user.id, subject, clock.now())
    return user
  }

  #callback(): URL {
    return new URL("/v1/login/oidc/callback", this.#parts.origin)
  }

  /** Asked for when first needed, and again when it failed. */
  #discovered(): Promise<oidc.Configuration> {
    this.#config ??= this.#discover().catch((cause: unknown) => {
      this.#config = undefined
      throw new Fault("unavailable", "the identity provider does not answer", { cause, hint: "see WARREN_OIDC_ISSUER" })
    })
    return this.#config
  }

  async #discover(): Promise<oidc.Configuration> {
    const { issuer, client, secret } = this.#parts.settings
    const url = new URL(issuer)
    // Without TLS only to this very machine, where there is nobody on the way.
    const isHere = /^(localhost|127\.0\.0\.1|\[::1\])$/.test(url.hostname)
    const options = { timeout: oidcLimits.timeoutS, ...(isHere ? { execute: [oidc.allowInsecureRequests] } : {}) }
    return secret === ""
      ? oidc.discovery(url, client, undefined, oidc.None(), options)
      : oidc.discovery(url, client, secret, undefined, options)
  }
}

/** A path here and nowhere else: browsers read `//x`, `/\x` and much more as another host. */
export function isOwnPlace(next: string): boolean {
  return next.length <= 512 && /^\/(?:[\w~-][\w./~%=&?+-]*)?$/.test(next)
}

function refused(cause?: unknown): Fault {
  return new Fault("unauthenticated", "the identity provider did not vouch for a user of this Warren", {
    cause,
    hint: "an administrator has to make a user with your name first",
  })
}
