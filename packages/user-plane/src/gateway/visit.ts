import { originOf, hasOwnNames, type HostNames } from "./authority.ts"
import { labelOf, type Address } from "./address.ts"
import type { Admission, Admissions } from "./admission.ts"
import { isFramed, isNavigation } from "./browser-guard.ts"
import { cookieName, type Credentials } from "./credentials.ts"
import { gatewayLimits } from "./limits.ts"
import { GatewayRefusal } from "./refusal.ts"

/** Where a browser is sent instead of in. */
export interface Detour {
  readonly status: 303 | 307
  readonly location: string
  readonly setCookie?: string
}

interface Visit {
  readonly method: string
  readonly raw: readonly string[]
  readonly address: Address
  readonly credentials: Credentials
  readonly admission: Admission
  readonly names: HostNames
}

/**
 * A token in a URL is taken out of it at once: what a browser shows, keeps and tells others has none. And a person who comes by
 * the gateway's paths is sent on to the preview's own host name, where its pages are nobody else's.
 */
export function detourOf(visit: Visit, admissions: Admissions): Detour | undefined {
  const { address, credentials, admission, names } = visit
  const hasToken = credentials.inUrl !== undefined
  const movesOn = address.mode === "path" && isNavigation(visit.raw) && hasOwnNames(address.authority, names)
  if (!hasToken && !(movesOn && admission.how === "public")) return undefined
  if (hasToken && visit.method !== "GET" && visit.method !== "HEAD")
    throw new GatewayRefusal(400, "a token in a URL is for opening a page", {
      hint: "send it as Authorization: Bearer",
    })
  if (movesOn) return onward(visit, admissions)
  const location = `${address.prefix}${address.path}${credentials.query}`
  if (admission.how !== "url") return { status: 303, location }
  const grant = { ...admission.grant, isFramed: isFramed(visit.raw) }
  return { status: 303, location, setCookie: setCookie(address, admissions.cookieFor(grant), grant.isFramed) }
}

function onward({ address, admission, credentials, names }: Visit, admissions: Admissions): Detour {
  const { authority, session, target, path } = address
  const host = `${labelOf(session, target)}.${names.domain}`
  const there = `${originOf({ ...authority, host })}${path}`
  if (admission.how === "public") return { status: 307, location: `${there}${credentials.query}` }
  const more = credentials.query === "" ? "?" : `${credentials.query}&`
  return { status: 303, location: `${there}${more}token=${admissions.ticketFor(admission.grant, host)}` }
}

/**
 * For this host alone, and in path mode for this preview's paths alone. Scripts do not see it, and other sites do not send it; in a
 * frame of a page of another site only that page's frames do.
 */
export function setCookie({ prefix, authority }: Address, value: string, isFramed = false): string {
  const secure = authority.scheme === "https" ? "; Secure" : ""
  const age = Math.floor(gatewayLimits.cookieIdleMs / 1000)
  return `${cookieName}=${value}; Path=${prefix}/; Max-Age=${age}; HttpOnly; ${isFramed ? "SameSite=None; Secure; Partitioned" : `SameSite=Lax${secure}`}`
}
