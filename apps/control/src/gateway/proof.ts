import type { KeyObject } from "node:crypto"
import { isGatewayToken, verifyGatewayToken, type GatewayClaims } from "@warren/protocol/gateway-token.ts"

/** What a request brings to be let in with, as far as the control plane can tell what it goes back to. */
export interface Proof {
  /** Of a token that this control plane has signed and that is not over. */
  readonly claims: GatewayClaims | undefined
  /** Sign-ins and tokens that a ticket goes back to. */
  readonly via: string | undefined
}

const cookieName = "gateway_session"
const ticket = /^tkt_[\w-]{43}\.([\w-]{1,32})$/
const cookieVia = /^[\w-]{43}\.([\w-]{1,32})$/

export function proofOf(raw: readonly string[], url: string, key: KeyObject, now: number): Proof {
  const inUrl = /[?&]token=([^&]*)/.exec(url)?.[1]
  const shown = bearerOf(raw) ?? inUrl
  const claims = shown !== undefined && isGatewayToken(shown) ? claimsOf(shown, key, now) : undefined
  return { claims, via: claims?.via ?? ticket.exec(inUrl ?? "")?.[1] }
}

/** The same headers, without those cookies of the gateway's that go back to what does not count any more. */
export async function withLiveCookies(
  raw: readonly string[],
  isLive: (via: string) => Promise<boolean>,
): Promise<{ readonly raw: string[]; readonly vias: readonly string[]; readonly wasCut: boolean }> {
  const kept: string[] = []
  const vias: string[] = []
  let wasCut = false
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const [name = "", value = ""] = [raw[i], raw[i + 1]]
    if (name.toLowerCase() !== "cookie") {
      kept.push(name, value)
      continue
    }
    const cookies: string[] = []
    for (const cookie of value.split(";").map((one) => one.trim())) {
      const via = viaOf(cookie)
      if (via !== undefined && !(await isLive(via))) {
        wasCut = true
        continue
      }
      if (via !== undefined) vias.push(via)
      cookies.push(cookie)
    }
    if (cookies.length > 0) kept.push(name, cookies.join("; "))
  }
  return { raw: kept, vias, wasCut }
}

function viaOf(cookie: string): string | undefined {
  const [name = "", ...value] = cookie.split("=")
  return name.trim().toLowerCase() === cookieName ? cookieVia.exec(value.join("="))?.[1] : undefined
}

function bearerOf(raw: readonly string[]): string | undefined {
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const [, token] = raw[i]?.toLowerCase() === "authorization" ? (/^bearer +(\S+)$/i.exec(raw[i + 1] ?? "") ?? []) : []
    if (token !== undefined) return token
  }
  return undefined
}

/** The runner looks at it again; here it says whose it is, and what it goes back to. */
function claimsOf(token: string, key: KeyObject, now: number): GatewayClaims | undefined {
  try {
    const [, payload = ""] = token.split(".")
    const { sub } = JSON.parse(Buffer.from(payload, "base64url").toString()) as { sub?: unknown }
    return typeof sub === "string" ? verifyGatewayToken(token, { keys: [key], user: sub, now }) : undefined
  } catch {
    return undefined
  }
}
