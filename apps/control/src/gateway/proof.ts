import type { KeyObject } from "node:crypto"
import { verifyGatewayToken, type GatewayClaims } from "@warren/protocol/gateway-token.ts"
import { valuesOf } from "./relayed-head.ts"

/** What a request brings to be let in with, as far as the control plane can tell what it goes back to. */
export interface Proof {
  /** Of a token that this control plane has signed and that is not over. */
  readonly claims: GatewayClaims | undefined
  /** Sign-ins and tokens that it goes back to: one that does not count any more is one too many. */
  readonly vias: readonly string[]
}

const cookieName = "gateway_session"
const ticket = /^tkt_[\w-]{43}\.([\w-]{1,32})$/
const cookieVia = /^[\w-]{43}\.([\w-]{1,32})$/

/** Of everything that could be one: which of several the gateway takes is for it to say, and is not guessed here. */
export function proofOf(raw: readonly string[], url: string, key: KeyObject, now: number): Proof {
  const shown = [...bearersOf(raw), ...[...url.matchAll(/[?&]token=([^&]*)/g)].map(([, token = ""]) => token)]
  const claims = shown.flatMap((token) => claimsOf(token, key, now) ?? [])
  const tickets = shown.flatMap((token) => ticket.exec(token)?.[1] ?? [])
  return { claims: claims[0], vias: [...new Set([...claims.flatMap(({ via }) => via ?? []), ...tickets])] }
}

/** The same headers, without those cookies of the gateway's that go back to what does not count any more. */
export async function withLiveCookies(
  raw: readonly string[],
  isLive: (via: string) => Promise<boolean>,
): Promise<{ readonly raw: string[]; readonly vias: readonly string[] }> {
  const kept: string[] = []
  const vias: string[] = []
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const [name = "", value = ""] = [raw[i], raw[i + 1]]
    if (name.toLowerCase() !== "cookie") {
      kept.push(name, value)
      continue
    }
    const cookies: string[] = []
    for (const cookie of value.split(";").map((one) => one.trim())) {
      const via = viaOf(cookie)
      if (via !== undefined && !(await isLive(via))) continue
      if (via !== undefined) vias.push(via)
      cookies.push(cookie)
    }
    if (cookies.length > 0) kept.push(name, cookies.join("; "))
  }
  return { raw: kept, vias }
}

function viaOf(cookie: string): string | undefined {
  const [name = "", ...value] = cookie.split("=")
  return name.trim().toLowerCase() === cookieName ? cookieVia.exec(value.join("="))?.[1] : undefined
}

function bearersOf(raw: readonly string[]): string[] {
  return valuesOf(raw, "authorization").flatMap((value) => /^bearer +(\S+)$/i.exec(value)?.[1] ?? [])
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
