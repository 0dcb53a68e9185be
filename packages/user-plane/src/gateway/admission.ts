import type { Clock } from "@warren/base/clock.ts"
import type { GatewayClaims } from "@warren/protocol/gateway-token.ts"
import type { Tunnel } from "@warren/protocol/user-plane/tunnels.ts"
import { portOf, type Address } from "./address.ts"
import { builtInAt, type BuiltIn } from "./built-in.ts"
import { linkPrefix, ticketPrefix, type Credentials } from "./credentials.ts"
import { Grants, type Grant } from "./grants.ts"
import { OneTime } from "./one-time.ts"
import { GatewayRefusal } from "./refusal.ts"
import type { Tunnels } from "./tunnels.ts"

/** A request that is let in. */
export interface Admission {
  readonly how: "public" | "bearer" | "url" | "cookie"
  readonly grant: Grant
  /** Where it leads, unless to something of Warren's own. */
  readonly port: number | undefined
  readonly builtIn: BuiltIn | undefined
  readonly tunnel: Tunnel | undefined
  /** The value of a cookie that the browser should be told to keep. */
  readonly cookie?: string | undefined
}

interface AdmissionOptions {
  readonly tunnels: Pick<Tunnels, "find" | "isLink">
  readonly clock: Clock
  /** What a token says, if it is one of this user's, signed by the control plane. Throws otherwise. */
  verify(token: string): GatewayClaims
}

/** Who links are granted to: whoever has one. */
const anybody = ""

/** Decides who is let in to what. It asks nothing of the session: who may not know of it learns nothing by asking. */
export class Admissions {
  readonly #options: AdmissionOptions
  readonly #grants: Grants
  readonly #oneTime: OneTime

  constructor(options: AdmissionOptions) {
    this.#options = options
    this.#grants = new Grants(options.clock)
    this.#oneTime = new OneTime(options.clock)
  }

  admit(address: Address, credentials: Credentials): Admission {
    const { session, target } = address
    const tunnel = this.#options.tunnels.find(session, target)
    const found = this.#found(address, credentials, tunnel)
    const port = tunnel?.port ?? portOf(target)
    if (!found) throw new GatewayRefusal(401, "this is not open to everybody", { hint: "open it from Warren" })
    const builtIn = tunnel ? undefined : builtInAt(target)
    if (port === undefined && builtIn === undefined)
      throw new GatewayRefusal(404, `this session has no tunnel called ${target}`)
    if (found.grant.port !== undefined && found.grant.port !== port)
      throw new GatewayRefusal(403, "the token is for another port")
    if (builtIn !== undefined && !found.grant.tools)
      throw new GatewayRefusal(403, "the token is for ports only", { hint: "it needs the scope exec, too" })
    return { ...found, port, builtIn, tunnel }
  }

  /** The claims of a token for the gateway's own API, which no cookie opens: no page can make a browser use it. */
  owner({ bearer }: Credentials): GatewayClaims {
    if (bearer === undefined || this.#oneTime.isBurned(bearer)) throw unknown()
    const claims = this.#options.verify(bearer)
    if (claims.port !== undefined) throw new GatewayRefusal(403, "the token is for one port only")
    return claims
  }

  /** A cookie for who came with a token. */
  cookieFor(grant: Grant): string {
    return this.#grants.issue(grant)
  }

  /** Lets a browser in at another host name, once. */
  ticketFor(grant: Grant, host: string): string {
    return this.#oneTime.ticket(grant, host)
  }

  #found(
    address: Address,
    credentials: Credentials,
    tunnel: Tunnel | undefined,
  ): Pick<Admission, "how" | "grant" | "cookie"> | undefined {
    const { session, target } = address
    if (credentials.bearer !== undefined)
      return { how: "bearer", grant: this.#byToken(credentials.bearer, address, tunnel) }
    const known = this.#grants.find(credentials.cookies, { session, target })
    const isGood = known && (known.grant.tunnel === undefined || known.grant.tunnel === tunnel?.id)
    const byCookie = isGood ? { how: "cookie" as const, grant: known.grant, cookie: known.again } : undefined
    if (credentials.inUrl !== undefined) {
      // A page that is loaded again brings the token that let it in: it is used up, and no longer needed.
      return byCookie ?? { how: "url", grant: this.#onceByToken(credentials.inUrl, address, tunnel) }
    }
    if (byCookie) return byCookie
    return tunnel?.visibility === "public" ? { how: "public", grant: { user: anybody, session, target } } : undefined
  }

  #onceByToken(token: string, address: Address, tunnel: Tunnel | undefined): Grant {
    if (token.startsWith(ticketPrefix)) {
      const grant = this.#oneTime.redeem(token, address.authority.host)
      if (!grant || grant.session !== address.session || grant.target !== address.target) throw unknown()
      return grant
    }
    const grant = this.#byToken(token, address, tunnel)
    if (token.startsWith(linkPrefix)) return grant
    const leftMs = this.#options.verify(token).exp * 1000 - this.#options.clock.now()
    if (!this.#oneTime.burn(token, Math.max(0, leftMs) + burnedAfterMs)) throw unknown()
    return grant
  }

  #byToken(token: string, { session, target }: Address, tunnel: Tunnel | undefined): Grant {
    if (token.startsWith(linkPrefix)) {
      if (!tunnel || !this.#options.tunnels.isLink(tunnel, token)) throw unknown()
      return { user: anybody, session, target, tunnel: tunnel.id }
    }
    if (this.#oneTime.isBurned(token)) throw unknown()
    const { sub, sid, port, tools, via } = this.#options.verify(token)
    if (sid !== session) throw unknown()
    return { user: sub, session, target, port, tools, via }
  }
}

/** Longer than two clocks may be apart. */
const burnedAfterMs = 60_000

/** One answer for everything that is wrong with a token. */
function unknown(): GatewayRefusal {
  return new GatewayRefusal(401, "the token is not valid here", { hint: "open it from Warren again" })
}
