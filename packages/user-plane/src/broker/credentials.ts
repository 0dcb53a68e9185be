import type { IncomingMessage } from "node:http"
import { valuesOf } from "../egress/headers.ts"
import type { Errand } from "./errand.ts"

/** A real key. It is used and forgotten: never logged, never stored, never part of an error. */
export interface Key {
  readonly value: string
  /** Who it belongs to, for git; `x-access-token` unless told. */
  readonly username?: string
  /** How an LLM wants it: Anthropic takes `x-api-key` unless told, OpenAI always a bearer. */
  readonly kind?: "api-key" | "bearer"
}

/** Headers that carry somebody's credentials. What the client sends in them ends here. */
const carriers: ReadonlySet<string> = new Set([
  "authorization",
  "x-api-key",
  "api-key",
  "cookie",
  "proxy-authorization",
])

export function isCredential(name: string): boolean {
  return carriers.has(name)
}

/** The lease that a request shows: in the header each kind of client puts its key in. */
export function leaseTokenOf(request: IncomingMessage): string | undefined {
  const [apiKey] = valuesOf(request.rawHeaders, "x-api-key")
  if (apiKey !== undefined) return apiKey.trim()
  const [authorization = ""] = valuesOf(request.rawHeaders, "authorization")
  const [, scheme = "", value = ""] = /^(\w+) +(\S+)$/.exec(authorization.trim()) ?? []
  if (scheme.toLowerCase() === "bearer") return value
  if (scheme.toLowerCase() !== "basic") return undefined
  const pair = Buffer.from(value, "base64").toString("latin1")
  return pair.slice(pair.indexOf(":") + 1)
}

/** The header that a destination expects. */
export function keyHeader({ service }: Errand, key: Key): [name: string, value: string] {
  if (service === "git") {
    const pair = `${key.username ?? "x-access-token"}:${key.value}`
    return ["Authorization", `Basic ${Buffer.from(pair).toString("base64")}`]
  }
  const isApiKey = service === "anthropic" && key.kind !== "bearer"
  return isApiKey ? ["x-api-key", key.value] : ["Authorization", `Bearer ${key.value}`]
}

/** Every form of the key that could come back. */
export function spellingsOf(errand: Errand, key: Key): string[] {
  const header = keyHeader(errand, key)[1].replace(/^\w+ /, "")
  return [...new Set([key.value, header, Buffer.from(key.value).toString("base64").replace(/=+$/, "")])]
}
