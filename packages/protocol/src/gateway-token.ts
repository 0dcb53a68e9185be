import { sign, verify, type KeyObject } from "node:crypto"
import { Fault } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import { z } from "zod"

/** Good for one session of one user, at one gateway, for minutes. */
const Claims = z.object({
  sub: z.string().min(1).max(64),
  sid: z.string().min(1).max(64),
  aud: z.string().min(1).max(128),
  /** Only this port of it; all of them when absent. */
  port: z.int().min(1).max(65_535).optional(),
  /** Also what Warren itself keeps in it: a terminal, an editor, a desktop. Who may not run programs may not have these. */
  tools: z.boolean().optional(),
  /** What it was asked for with: a sign-in or a token. It is worth nothing when that is not any more. */
  via: z
    .string()
    .regex(/^[\w-]{1,32}$/)
    .optional(),
  /** No two are alike: a gateway lets one that was in a URL in once. */
  jti: z.string().min(1).max(64).optional(),
  iat: z.int(),
  exp: z.int(),
})
export type GatewayClaims = z.output<typeof Claims>

export const gatewayTokenLimits = { lifeS: 15 * 60, skewS: 5, charsMax: 2_048 } as const

/** The audience of a user's gateway: what is for one is for no other. */
export const gatewayOf = (user: string): string => `warren-gateway:${user}`

/**
 * The one header there is. It is compared as text and never acted on, so a token can choose neither its algorithm nor its
 * key.
 */
const header = Buffer.from(JSON.stringify({ alg: "EdDSA", typ: "warren-gateway+jwt" })).toString("base64url")

/** Whether something is meant to be such a token, good or not: a program inside may have tokens of its own. */
export function isGatewayToken(text: string): boolean {
  return text.startsWith(`${header}.`)
}

/** A JWT (EdDSA) that opens one session at its user's gateway. */
export function signGatewayToken(
  key: KeyObject,
  facts: {
    readonly user: string
    readonly session: string
    readonly port?: number | undefined
    readonly tools?: boolean | undefined
    readonly via?: string | undefined
    readonly lifeS: number
    readonly now: number
  },
): string {
  const iat = Math.floor(facts.now / 1000)
  const exp = iat + Math.min(facts.lifeS, gatewayTokenLimits.lifeS)
  const { user: sub, session: sid, port, tools, via } = facts
  const scope = { ...(port !== undefined && { port }), ...(tools && { tools }), ...(via !== undefined && { via }) }
  const claims: GatewayClaims = { sub, sid, aud: gatewayOf(sub), ...scope, jti: newId("jti"), iat, exp }
  const signed = `${header}.${Buffer.from(JSON.stringify(claims)).toString("base64url")}`
  return `${signed}.${sign(null, Buffer.from(signed), key).toString("base64url")}`
}

/** What the token says, if it is one for this user and, when given, this session. */
export function verifyGatewayToken(
  token: string,
  expected: {
    readonly keys: readonly KeyObject[]
    readonly user: string
    readonly session?: string | undefined
    readonly now: number
  },
): GatewayClaims {
  const [head = "", payload = "", signature = "", ...rest] = token.split(".")
  if (rest.length > 0 || token.length > gatewayTokenLimits.charsMax || head !== header) throw refused()
  const bytes = Buffer.from(signature, "base64url")
  const isCanonical = bytes.toString("base64url") === signature
  if (!isCanonical || !expected.keys.some((key) => verify(null, Buffer.from(`${head}.${payload}`), key, bytes))) {
    throw refused()
  }
  const claims = Claims.safeParse(jsonOf(payload))
  if (!claims.success || !isFor(claims.data, expected)) throw refused()
  return claims.data
}

function isFor(
  claims: GatewayClaims,
  { user, session, now }: { user: string; session?: string | undefined; now: number },
): boolean {
  const { lifeS, skewS } = gatewayTokenLimits
  const at = now / 1000
  const isInTime = claims.exp > at - skewS && claims.iat <= at + skewS && claims.exp - claims.iat <= lifeS
  return (
    isInTime &&
    claims.sub === user &&
    claims.aud === gatewayOf(user) &&
    (session === undefined || claims.sid === session)
  )
}

/** One answer for everything that is wrong with it. */
function refused(): Fault {
  return new Fault("unauthenticated", "the token is not valid here", { hint: "ask the control plane for a new one" })
}

function jsonOf(payload: string): unknown {
  try {
    return JSON.parse(Buffer.from(payload, "base64url").toString())
  } catch {
    return undefined
  }
}
