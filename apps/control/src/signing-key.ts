import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto"
import { chmod, readFile, stat } from "node:fs/promises"
import { join } from "node:path"
import { writeFileAtomic } from "@warren/base/atomic-file.ts"
import { failpoint } from "@warren/base/failpoint.ts"
import { errnoOf, Fault } from "@warren/base/fault.ts"
import { ensureFolder } from "@warren/base/folder.ts"

export interface SigningKey {
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

const publicMode = 0o644
const othersMask = 0o077

/**
 * The key the control plane signs with: made at the first start, for its account only. Beside it lies the public half,
 * for runners. Another key takes effect at once: statements live for seconds, so there is no time in which both count.
 */
export async function openSigningKey(folder: string): Promise<SigningKey> {
  ensureFolder(folder, 0o700)
  const file = join(folder, "statement.key")
  const privateKey = (await readKey(file)) ?? (await makeKey(file))
  failpoint("key/made")
  const publicKey = createPublicKey(privateKey)
  const text = publicKey.export({ type: "spki", format: "pem" })
  const publicFile = join(folder, "statement.pub")
  await writeFileAtomic(publicFile, text)
  // Whatever the umask: runners of other accounts read it.
  await chmod(publicFile, publicMode)
  return { privateKey, publicKey }
}

/** Which control plane it is, by its key. */
export function nameOf(publicKey: KeyObject): string {
  const bytes = publicKey.export({ type: "spki", format: "der" })
  return createHash("sha256").update(bytes).digest("hex").slice(0, 32)
}

async function readKey(file: string): Promise<KeyObject | undefined> {
  try {
    const { mode } = await stat(file)
    if ((mode & othersMask) !== 0) {
      throw new Fault("forbidden", `others may read ${file}`, {
        hint: `whoever has it can ask anything of every runner: delete it, and a new one is made`,
      })
    }
    return createPrivateKey(await readFile(file, "utf8"))
  } catch (failure) {
    if (errnoOf(failure) === "ENOENT") return undefined
    throw failure
  }
}

async function makeKey(file: string): Promise<KeyObject> {
  const { privateKey } = generateKeyPairSync("ed25519")
  await writeFileAtomic(file, privateKey.export({ type: "pkcs8", format: "pem" }))
  return privateKey
}
