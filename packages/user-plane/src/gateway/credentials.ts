import { isGatewayToken } from "@warren/protocol/gateway-token.ts"
import { endToEnd, pairsOf, valuesOf } from "../egress/headers.ts"
import { GatewayRefusal } from "./refusal.ts"

export const cookieName = "gateway_session"
export const ticketPrefix = "tkt_"
export const linkPrefix = "lnk_"

/** What a request brings to be let in with, and the rest of it, which is for the program inside. */
export interface Credentials {
  /** From `Authorization: Bearer`. */
  readonly bearer: string | undefined
  /** From `?token=`: it was in a URL, so others may have seen it. */
  readonly inUrl: string | undefined
  readonly cookies: readonly string[]
  /** The query without it. */
  readonly query: string
}

/** Only what is meant for us: a program inside may have bearer tokens and a `?token=` of its own, and gets them. */
export function credentialsOf(raw: readonly string[], query: string): Credentials {
  const { token, rest } = takeToken(query)
  return { bearer: bearerOf(raw), inUrl: token, cookies: ourCookies(raw), query: rest }
}

/** The headers for the program inside: nothing in them opens the gateway. */
export function withoutCredentials(raw: readonly string[]): string[] {
  const isBearer = bearerOf(raw) !== undefined
  const kept = endToEnd(raw, (name) => name === "cookie" || (isBearer && name === "authorization"))
  const cookies = cookiesOf(raw).filter((cookie) => !isOurCookie(cookie))
  return cookies.length > 0 ? [...kept, "Cookie", cookies.join("; ")] : kept
}

function isOurs(token: string): boolean {
  return isGatewayToken(token) || token.startsWith(ticketPrefix) || token.startsWith(linkPrefix)
}

function bearerOf(raw: readonly string[]): string | undefined {
  const all = valuesOf(raw, "authorization")
  const ours = all.map((value) => /^bearer +(\S+)$/i.exec(value)?.[1] ?? "").find(isOurs)
  // Wherever it stands: of several, another reader would take another one.
  if (ours !== undefined && all.length > 1) throw new GatewayRefusal(400, "more than one Authorization")
  return ours
}

function takeToken(query: string): { token: string | undefined; rest: string } {
  const parts = query.slice(1).split("&")
  const isToken = (part: string): boolean => part.startsWith("token=") && isOurs(part.slice("token=".length))
  const [found, ...others] = parts.filter(isToken)
  if (others.length > 0) throw new GatewayRefusal(400, "more than one token")
  if (found === undefined) return { token: undefined, rest: query }
  const rest = parts.filter((part) => !isToken(part)).join("&")
  return { token: found.slice("token=".length), rest: rest === "" ? "" : `?${rest}` }
}

function cookiesOf(raw: readonly string[]): string[] {
  return [...pairsOf(raw)]
    .filter(([name]) => name.toLowerCase() === "cookie")
    .flatMap(([, value]) => value.split(";"))
    .map((cookie) => cookie.trim())
    .filter((cookie) => cookie !== "")
}

function nameOf(cookie: string): string {
  return cookie.split("=", 1)[0]?.trim().toLowerCase() ?? ""
}

function isOurCookie(cookie: string): boolean {
  return isOurCookieName(nameOf(cookie))
}

/** Also with the prefixes that browsers treat specially. */
export function isOurCookieName(name: string): boolean {
  return (
    name
      .trim()
      .toLowerCase()
      .replace(/^__(?:host|secure)-/, "") === cookieName
  )
}

/** There may be several: a page of the same site can put one of its own beside ours, and it is worth nothing. */
function ourCookies(raw: readonly string[]): string[] {
  return cookiesOf(raw)
    .filter((cookie) => nameOf(cookie) === cookieName)
    .map((cookie) => cookie.slice(cookie.indexOf("=") + 1))
}
