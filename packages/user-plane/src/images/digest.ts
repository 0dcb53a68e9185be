import { createHash, type Hash } from "node:crypto"
import { Fault } from "@warren/base/fault.ts"

/** `sha256:` and 64 hexadecimal digits: the name of some bytes that nobody can give to others. */
export type Digest = `sha256:${string}`

const pattern = /^sha256:[0-9a-f]{64}$/

export function isDigest(text: string): text is Digest {
  return pattern.test(text)
}

/** Only sha256: a digest also becomes the name of a folder. */
export function digestOf(text: string): Digest {
  if (isDigest(text)) return text
  throw new Fault("invalid", `${JSON.stringify(text.slice(0, 100))} is not a sha256 digest`)
}

export function hexOf(digest: Digest): string {
  return digest.slice("sha256:".length)
}

export function newHash(): Hash {
  return createHash("sha256")
}

export function finish(hash: Hash): Digest {
  return `sha256:${hash.digest("hex")}`
}

export function digestBytes(bytes: string | Uint8Array): Digest {
  return finish(newHash().update(bytes))
}

export function checkDigest(what: string, expected: Digest, bytes: Uint8Array): void {
  const actual = digestBytes(bytes)
  if (actual !== expected) throw wrongDigest(what, expected, actual)
}

export function wrongDigest(what: string, expected: Digest, actual: Digest): Fault {
  return new Fault("invalid", `${what} is not what its digest says: ${actual} instead of ${expected}`, {
    subject: `blob:${expected}`,
  })
}
