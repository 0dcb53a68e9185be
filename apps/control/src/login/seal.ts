import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto"

const algorithm = "aes-256-gcm"
const nonceBytes = 12
const tagBytes = 16

/** Puts something into a browser's hands that it can neither read nor change. */
export class Seal {
  readonly #key: Buffer

  constructor(secret: string | Buffer) {
    this.#key = createHash("sha256").update("warren-seal-1\n").update(secret).digest()
  }

  close(value: object): string {
    const nonce = randomBytes(nonceBytes)
    const cipher = createCipheriv(algorithm, this.#key, nonce)
    const sealed = Buffer.concat([cipher.update(JSON.stringify(value)), cipher.final()])
    return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString("base64url")
  }

  /** Undefined when it was not sealed here, or is not whole. */
  open(text: string): unknown {
    try {
      const bytes = Buffer.from(text, "base64url")
      const tag = bytes.subarray(nonceBytes, nonceBytes + tagBytes)
      const decipher = createDecipheriv(algorithm, this.#key, bytes.subarray(0, nonceBytes), {
        authTagLength: tagBytes,
      })
      decipher.setAuthTag(tag)
      const opened = Buffer.concat([decipher.update(bytes.subarray(nonceBytes + tagBytes)), decipher.final()])
      return JSON.parse(opened.toString())
    } catch {
      return undefined
    }
  }
}
