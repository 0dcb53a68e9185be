import { createHash } from "node:crypto"
import { isSameText } from "../access-token.ts"

export interface Signed {
  readonly path: string
  readonly operation: "read" | "write"
  readonly user: string
  readonly signature: string
  /** In seconds; absent: for ever. */
  readonly expiration?: string | undefined
}

/** Whether somebody who has the token has signed this. */
export function isSigned({ path, operation, user, signature, expiration }: Signed, token: string): boolean {
  const text = [path, operation, user, token, ...(expiration === undefined ? [] : [expiration])].join(":")
  const expected = createHash("sha256").update(text).digest("base64").replace(/=+$/, "")
  return isSameText(signature, `v1_${expected}`)
}

export function isExpired({ expiration }: Signed, now: number): boolean {
  return expiration !== undefined && Number(expiration) * 1000 < now
}
