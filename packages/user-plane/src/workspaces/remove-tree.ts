import { randomBytes } from "node:crypto"
import { constants, type Dirent } from "node:fs"
import { open, opendir, rename, rmdir, unlink, type FileHandle } from "node:fs/promises"
import { errnoOf, Fault } from "@warren/base/fault.ts"
import { inside } from "./folder-handle.ts"

const folderFlags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
/** How often a folder is emptied that somebody fills at the same time. */
const roundsMax = 1_000

/**
 * Removes whatever has this name in `trash`, a folder of ours, and everything below it, never through a link. Folders are laid side
 * by side as they are met: so it takes two descriptors, however deep they were.
 */
export async function removeTree(trash: FileHandle, name: string | Buffer): Promise<void> {
  const pending: (string | Buffer)[] = [name]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const path = inside(trash, next)
    for (let round = 0; !(await removeOne(trash, path, pending)); round++) {
      if (round >= roundsMax) throw new Fault("conflict", "it is being written to faster than it can be removed")
    }
  }
}

/** Empties a folder of ours. */
export async function emptyFolder(path: string): Promise<void> {
  const folder = await open(path, folderFlags)
  try {
    for await (const entry of entriesOf(folder)) await removeTree(folder, entry)
  } finally {
    await folder.close()
  }
}

/** Whether it is gone. */
async function removeOne(trash: FileHandle, path: Buffer, pending: (string | Buffer)[]): Promise<boolean> {
  const folder = await open(path, folderFlags).catch((failure: unknown) => {
    if (!["ENOTDIR", "ELOOP", "ENOENT"].includes(errnoOf(failure))) throw failure
    return undefined
  })
  if (!folder) return unlink(path).then(yes, unless("ENOENT", true))
  try {
    for await (const entry of entriesOf(folder)) {
      const isGone = await unlink(inside(folder, entry)).then(yes, unlessAny(["EISDIR", "EPERM"], false))
      if (!isGone) pending.push(await layAside(trash, inside(folder, entry)))
    }
  } finally {
    await folder.close()
  }
  return rmdir(path).then(yes, unless("ENOTEMPTY", false))
}

async function layAside(trash: FileHandle, path: Buffer): Promise<string> {
  const name = randomBytes(12).toString("hex")
  await rename(path, inside(trash, name))
  return name
}

async function* entriesOf(folder: FileHandle): AsyncGenerator<Buffer, void, void> {
  // The types know only names that are text; a sandbox is free to use others.
  const options = { encoding: "buffer" as BufferEncoding }
  for await (const { name } of (await opendir(`/proc/self/fd/${folder.fd}`, options)) as AsyncIterable<Dirent>) {
    yield name as unknown as Buffer
  }
}

const yes = (): boolean => true

function unless(errno: string, answer: boolean): (failure: unknown) => boolean {
  return unlessAny([errno], answer)
}

function unlessAny(errnos: readonly string[], answer: boolean): (failure: unknown) => boolean {
  return (failure) => {
    if (errnos.includes(errnoOf(failure))) return answer
    throw failure
  }
}
