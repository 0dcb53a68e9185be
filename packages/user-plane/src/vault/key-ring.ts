import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto"
import { constants } from "node:fs"
import { open, type FileHandle } from "node:fs/promises"
import { dirname } from "node:path"
import { writeFileAtomic } from "@warren/base/atomic-file.ts"
import { errnoOf, Fault } from "@warren/base/fault.ts"
import { ensureFolder } from "@warren/base/folder.ts"
import { z } from "zod"

const algorithm = "aes-256-gcm"
const keyBytes = 32
const nonceBytes = 12
const tagBytes = 16
const fileBytesMax = 64 * 1024
const othersMay = 0o077

const File = z.object({
  current: z.string(),
  keys: z.record(
    z.string(),
    z.base64().refine((text) => Buffer.from(text, "base64").length === keyBytes),
  ),
})

/** The keys that secrets are sealed with: usually one, two while they are being changed. */
export class KeyRing {
  readonly current: string
  readonly #keys: ReadonlyMap<string, Buffer>

  constructor(current: string, keys: ReadonlyMap<string, Buffer>) {
    if (!keys.has(current))
      throw new Fault("unavailable", "the vault's key file does not hold its current key", { hint: restore })
    this.current = current
    this.#keys = keys
  }

  /** One new key. */
  static make(): KeyRing {
    const id = randomBytes(6).toString("hex")
    return new KeyRing(id, new Map([[id, randomBytes(keyBytes)]]))
  }

  get size(): number {
    return this.#keys.size
  }

  /** These keys and a new one, which is the current one from now on. */
  extended(): KeyRing {
    const next = KeyRing.make()
    return new KeyRing(next.current, new Map([...this.#keys, ...next.#keys]))
  }

  /** Only the current key. */
  reduced(): KeyRing {
    return new KeyRing(this.current, new Map([...this.#keys].filter(([id]) => id === this.current)))
  }

  /** `context` is not hidden, but what is sealed opens only with the same one: it belongs to its row and no other. */
  seal(value: string, context: string): Buffer {
    const nonce = randomBytes(nonceBytes)
    const cipher = createCipheriv(algorithm, this.#key(this.current), nonce, { authTagLength: tagBytes })
    cipher.setAAD(Buffer.from(`${this.current}\0${context}`))
    return Buffer.concat([nonce, cipher.update(value, "utf8"), cipher.final(), cipher.getAuthTag()])
  }

  open(sealed: Uint8Array, keyId: string, context: string): string {
    const key = this.#key(keyId)
    try {
      const nonce = sealed.subarray(0, nonceBytes)
      const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes })
      decipher.setAAD(Buffer.from(`${keyId}\0${context}`))
      decipher.setAuthTag(sealed.subarray(-tagBytes))
      return Buffer.concat([decipher.update(sealed.subarray(nonceBytes, -tagBytes)), decipher.final()]).toString("utf8")
    } catch {
      // The cause says nothing more, and must never carry a piece of what it could not open.
      throw new Fault("unavailable", "a secret was changed outside of the vault", { hint: "set it again" })
    }
  }

  /** Durable when it returns: whatever is sealed after that can be opened again. */
  async write(path: string): Promise<void> {
    const keys = Object.fromEntries([...this.#keys].map(([id, key]) => [id, key.toString("base64")]))
    ensureFolder(dirname(path), 0o700)
    await writeFileAtomic(path, `${JSON.stringify({ current: this.current, keys })}\n`, { mode: 0o600 })
  }

  #key(id: string): Buffer {
    const key = this.#keys.get(id)
    if (!key) throw new Fault("unavailable", "a secret was sealed with a key that is not there", { hint: restore })
    return key
  }
}

const restore = "restore the key file from a backup, or delete the secret and set it again"

/** Undefined when there is no file. Refused: one that others can read, or that is not a file of ours. */
export async function readKeyRing(path: string): Promise<KeyRing | undefined> {
  const file = await openKeyFile(path)
  if (!file) return undefined
  try {
    await check(file, path)
    const { current, keys } = File.parse(JSON.parse(await file.readFile("utf8")))
    return new KeyRing(current, new Map(Object.entries(keys).map(([id, text]) => [id, Buffer.from(text, "base64")])))
  } catch (thrown) {
    if (thrown instanceof Fault) throw thrown
    // Without its cause: that might quote the file.
    throw new Fault("unavailable", "the vault's key file makes no sense", { hint: restore, subject: `file:${path}` })
  } finally {
    await file.close()
  }
}

async function openKeyFile(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (cause) {
    if (errnoOf(cause) === "ENOENT") return undefined
    throw new Fault("unavailable", `the vault's key file cannot be opened (${errnoOf(cause)})`, {
      cause,
      subject: `file:${path}`,
    })
  }
}

async function check(file: FileHandle, path: string): Promise<void> {
  const stats = await file.stat()
  const isOurs = stats.isFile() && stats.uid === process.getuid?.() && (stats.mode & othersMay) === 0
  if (isOurs && stats.size <= fileBytesMax) return
  throw new Fault("unavailable", "the vault's key file must be a small file that only its owner can read", {
    hint: `chmod 600 ${path}`,
    subject: `file:${path}`,
  })
}
