import { randomBytes } from "node:crypto"
import { open, rename, rm } from "node:fs/promises"
import { basename, dirname, join } from "node:path"

interface AtomicWriteOptions {
  readonly mode?: number
}

/**
 * Replaces a file so that every reader, and a machine that loses power, sees the old bytes or the new ones. Durable when
 * it returns: the data is synced before the rename and the directory after it.
 */
export async function writeFileAtomic(
  path: string,
  data: string | Uint8Array,
  options: AtomicWriteOptions = {},
): Promise<void> {
  const folder = dirname(path)
  const draft = join(folder, `.${basename(path)}.${randomBytes(6).toString("hex")}.tmp`)
  try {
    const file = await open(draft, "wx", options.mode ?? 0o600)
    try {
      await file.writeFile(data)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(draft, path)
  } catch (failure) {
    await rm(draft, { force: true })
    throw failure
  }
  await syncFolder(folder)
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r")
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
