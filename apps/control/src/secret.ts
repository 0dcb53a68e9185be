import { createHash, randomBytes, timingSafeEqual } from "node:crypto"

const secretBytes = 32

/** What proves something by being known: random, told once, kept only as its hash. */
export function newSecret(prefix = ""): string {
  return `${prefix}${randomBytes(secretBytes).toString("base64url")}`
}

/** The form that clients of E2B insist on. */
export function newE2bSecret(): string {
  return `e2b_${randomBytes(secretBytes).toString("hex")}`
}

/** Of 256 random bits, so no salt and no slowness are needed. */
export function hashOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex")
}

/** Of two hashes. Takes the same time whatever was given. */
export function isSame(given: string, expected: string): boolean {
  return timingSafeEqual(Buffer.from(given), Buffer.from(expected))
}
