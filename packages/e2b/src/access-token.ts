import { createHash, createHmac, timingSafeEqual } from "node:crypto"

/** What opens one sandbox. Nothing is kept: each is made from the sandbox's id and a secret of this Warren's. */
export class AccessTokens {
  readonly #secret: Buffer

  constructor(secret: Buffer) {
    this.#secret = secret
  }

  /** For its commands and files. */
  ofSandbox(sandboxId: string): string {
    return this.#make("envd", sandboxId)
  }

  /** For its ports, where they are not for everybody. */
  ofTraffic(sandboxId: string): string {
    return this.#make("traffic", sandboxId)
  }

  /** For the files of a volume, in the name of a key. */
  ofVolume(key: string, volume: string): string {
    return key + this.#make("volume", `${key} ${volume}`)
  }

  /** For what is sent for a build. */
  ofUpload(key: string, hash: string): string {
    return this.#make("upload", `${key} ${hash}`)
  }

  isUpload(given: string, key: string, hash: string): boolean {
    return isSameText(given, this.ofUpload(key, hash))
  }

  #make(what: string, id: string): string {
    return createHmac("sha256", this.#secret).update(`e2b ${what} ${id}`).digest("hex")
  }
}

/** Takes the same time whatever was given. */
export function isSameText(given: string, expected: string): boolean {
  const [a, b] = [given, expected].map((text) => createHash("sha256").update(text).digest())
  return a !== undefined && b !== undefined && timingSafeEqual(a, b)
}
