import { Fault } from "@warren/base/fault.ts"
import { z } from "zod"

export interface Credentials {
  readonly username: string
  readonly password: string
}

/** What a registry asks for in `WWW-Authenticate`. */
export type Challenge =
  | { readonly scheme: "basic" }
  | { readonly scheme: "bearer"; readonly realm: string; readonly service?: string; readonly scope?: string }

export function readChallenge(header: string | null): Challenge | undefined {
  const [, scheme = "", rest = ""] = /^\s*([a-z]+)\s*(.*)$/i.exec(header ?? "") ?? []
  if (scheme.toLowerCase() === "basic") return { scheme: "basic" }
  if (scheme.toLowerCase() !== "bearer") return undefined
  const fields = new Map<string, string>()
  for (const [, key = "", quoted, bare] of rest.matchAll(/([a-z_]+)=(?:"([^"]*)"|([^\s,]+))/gi)) {
    fields.set(key.toLowerCase(), quoted ?? bare ?? "")
  }
  const realm = fields.get("realm")
  if (realm === undefined) return undefined
  const service = fields.get("service")
  const scope = fields.get("scope")
  return {
    scheme: "bearer",
    realm,
    ...(service === undefined ? {} : { service }),
    ...(scope === undefined ? {} : { scope }),
  }
}

export function basic({ username, password }: Credentials): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`
}

const Token = z.object({ token: z.string().optional(), access_token: z.string().optional() })

/** The address of the token service for a challenge. */
export function tokenAddress(challenge: Extract<Challenge, { scheme: "bearer" }>, scope: string): URL {
  let address: URL
  try {
    address = new URL(challenge.realm)
  } catch (cause) {
    throw new Fault("unavailable", "the registry names a token service that is no address", { cause })
  }
  if (challenge.service !== undefined) address.searchParams.set("service", challenge.service)
  address.searchParams.set("scope", challenge.scope ?? scope)
  return address
}

export function readToken(body: unknown): string {
  const read = Token.safeParse(body)
  const token = read.success ? (read.data.token ?? read.data.access_token) : undefined
  if (token === undefined || !/^[\x21-\x7e]{1,65536}$/.test(token)) {
    throw new Fault("unavailable", "the token service of the registry gave no token")
  }
  return `Bearer ${token}`
}
