import { readFileSync, renameSync, writeFileSync } from "node:fs"
import { z } from "zod"
import type { SigningKey } from "../signing-key.ts"
import type { CheckpointRow } from "../store/audit-rows.ts"
import { isSignedCheckpoint, signCheckpoint } from "./chain.ts"

const Kept = z.object({ seq: z.int(), hash: z.string(), time: z.int(), signature: z.string() })

/**
 * How far the log had come, signed, in a file and not in the database: whoever can only write there cannot take away the
 * newest entries unseen.
 */
export class AuditHead {
  readonly #path: string
  readonly #key: SigningKey

  constructor(path: string, key: SigningKey) {
    this.#path = path
    this.#key = key
  }

  /** Undefined when there is none, or none of ours. */
  read(): CheckpointRow | undefined {
    try {
      const kept = Kept.parse(JSON.parse(readFileSync(this.#path, "utf8")))
      return isSignedCheckpoint(this.#key, kept) ? kept : undefined
    } catch {
      return undefined
    }
  }

  /** Written after the entries, so it may lag behind them and is never ahead. */
  write(at: Omit<CheckpointRow, "signature">): void {
    writeFileSync(`${this.#path}.new`, JSON.stringify(signCheckpoint(this.#key, at)), { mode: 0o600 })
    renameSync(`${this.#path}.new`, this.#path)
  }
}
