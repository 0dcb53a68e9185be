import { createHash, randomBytes } from "node:crypto"
import { Fault } from "@warren/base/fault.ts"
import type { Id } from "@warren/base/id.ts"

export type LeaseId = Id<"lea">

/** What a lease is good for. `git:write` includes reading. */
export const leaseScopes = ["llm:anthropic", "llm:openai", "git:read", "git:write"] as const
export type LeaseScope = (typeof leaseScopes)[number]

/** The right of one session to use one key at one destination for some time. The key itself stays in the runner. */
export interface Lease {
  readonly id: LeaseId
  readonly session: string
  readonly scope: LeaseScope
  /** An LLM's host (`api.anthropic.com`), a git host (`github.com`), or a repository on it (`github.com/acme/widgets`). */
  readonly destination: string
  readonly createdAt: number
  readonly expiresAt: number
  readonly revokedAt: number | undefined
}

/** A lease with its secret: exists only where it was granted, and is shown once. */
export interface GrantedLease extends Lease {
  readonly token: string
}

const prefix = "lease_"
const secretBytes = 32
const destinationForm = /^[a-z0-9.-]+(?::\d{1,5})?(?:\/[\w.~-]+)*$/

export function newToken(): string {
  return prefix + randomBytes(secretBytes).toString("base64url")
}

/** What is kept of a token. 256 random bits need no salt and no slow hash. */
export function digestOf(token: string): Buffer {
  return createHash("sha256").update(token).digest()
}

export function isScope(value: unknown): value is LeaseScope {
  return leaseScopes.some((scope) => scope === value)
}

/** In its one spelling; throws when it is none. */
export function canonicalDestination(text: string): string {
  const destination = text.toLowerCase().replace(/\.git$/, "")
  const isPlain = destination.split("/").every((part) => part !== "." && part !== "..")
  if (destinationForm.test(destination) && isPlain) return destination
  throw new Fault("invalid", `"${text}" is not a destination`, { hint: "write host, or host/owner/repository" })
}
