import { createHash, sign, verify } from "node:crypto"
import type { SigningKey } from "../signing-key.ts"
import type { AuditRow, CheckpointRow } from "../store/audit-rows.ts"

/** The hash before the first entry. */
export const genesis = "0".repeat(64)

/** A row's hash: over everything in it and the hash before it, so that none can be changed, removed or put in between. */
export function hashOfRow(before: string, row: Omit<AuditRow, "hash">): string {
  const { seq, time, user, via, action, subject, address, request, result } = row
  const text = JSON.stringify([before, seq, time, user, via, action, subject, address, request, result])
  return createHash("sha256").update(text).digest("hex")
}

export function signCheckpoint(key: SigningKey, at: Omit<CheckpointRow, "signature">): CheckpointRow {
  return { ...at, signature: sign(null, wordsOf(at), key.privateKey).toString("base64url") }
}

export function isSignedCheckpoint(key: SigningKey, checkpoint: CheckpointRow): boolean {
  return verify(null, wordsOf(checkpoint), key.publicKey, Buffer.from(checkpoint.signature, "base64url"))
}

function wordsOf({ seq, hash, time }: Omit<CheckpointRow, "signature">): Buffer {
  return Buffer.from(`warren-audit-1\n${seq}\n${hash}\n${time}`)
}
