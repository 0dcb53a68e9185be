import { Transform } from "node:stream"

const star = 0x2a

/**
 * Overwrites secrets in what passes, letter by letter, so that lengths stay true. Nothing is delayed but a chunk's end that could be
 * the beginning of a secret.
 */
export function mask(secrets: readonly string[]): Transform {
  const needles = secrets.map((secret) => Buffer.from(secret)).filter((needle) => needle.length > 0)
  let held: Buffer = Buffer.alloc(0)
  return new Transform({
    transform(chunk: Buffer, _, done) {
      const bytes = held.length > 0 ? Buffer.concat([held, chunk]) : chunk
      for (const needle of needles) cover(bytes, needle)
      const keep = Math.max(0, ...needles.map((needle) => beginningAtEnd(bytes, needle)))
      held = keep > 0 ? Buffer.from(bytes.subarray(bytes.length - keep)) : Buffer.alloc(0)
      done(null, bytes.subarray(0, bytes.length - keep))
    },
    flush(done) {
      done(null, held)
    },
  })
}

export function maskText(text: string, secrets: readonly string[]): string {
  return secrets.reduce((masked, secret) => masked.replaceAll(secret, "*".repeat(secret.length)), text)
}

function cover(bytes: Buffer, needle: Buffer): void {
  for (let at = bytes.indexOf(needle); at >= 0; at = bytes.indexOf(needle, at)) bytes.fill(star, at, at + needle.length)
}

/** How many of the last bytes are the first of the needle's. */
function beginningAtEnd(bytes: Buffer, needle: Buffer): number {
  for (let size = Math.min(needle.length - 1, bytes.length); size > 0; size--) {
    if (bytes.compare(needle, 0, size, bytes.length - size) === 0) return size
  }
  return 0
}
