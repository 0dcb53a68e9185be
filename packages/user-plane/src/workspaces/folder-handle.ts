import { constants } from "node:fs"
import { chmod, mkdir, open, type FileHandle } from "node:fs/promises"
import { errnoOf, Fault, type FaultCode } from "@warren/base/fault.ts"
import { ensureFolder } from "@warren/base/folder.ts"
import type { Place } from "./place.ts"

const folderFlags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW

/** Whose files are, and with which modes they begin. */
export interface Ownership {
  /** Undefined where we may not give files away; then the modes let everybody who can come near write. */
  readonly id: number | undefined
  readonly fileMode: number
  readonly folderMode: number
}

/** What lies in a folder that is held open, whatever becomes of the folder's name meanwhile. */
export function inside(folder: FileHandle, name: string | Buffer): Buffer {
  return Buffer.concat([Buffer.from(`/proc/self/fd/${folder.fd}/`), Buffer.from(name)])
}

/**
 * Opens folders one by one from `top` down, each inside of the one before and never through a link: whatever is swapped meanwhile,
 * no path leads out. With `making`, those that are missing are made.
 */
export async function openFolder(top: string, place: Place, making?: Ownership): Promise<FileHandle> {
  let folder = await open(top, folderFlags)
  for (const [depth, name] of place.entries()) {
    const above = folder
    try {
      folder = await step(above, name, making)
    } catch (failure) {
      throw fileFault(failure, place.slice(0, depth + 1).join("/"))
    } finally {
      await above.close()
    }
  }
  return folder
}

async function step(above: FileHandle, name: string, making: Ownership | undefined): Promise<FileHandle> {
  const path = inside(above, name)
  try {
    return await open(path, folderFlags)
  } catch (failure) {
    if (!making || errnoOf(failure) !== "ENOENT") throw failure
  }
  return makeFolder(path, making)
}

/** One that somebody else makes at the same moment is as good, and stays theirs. */
async function makeFolder(path: Buffer, { id, folderMode }: Ownership): Promise<FileHandle> {
  const isNew = await mkdir(path, folderMode).then(
    () => true,
    (failure: unknown) => {
      if (errnoOf(failure) !== "EEXIST") throw failure
      return false
    },
  )
  const folder = await open(path, folderFlags)
  if (!isNew) return folder
  try {
    await folder.chmod(folderMode)
    if (id !== undefined) await folder.chown(id, id)
    return folder
  } catch (failure) {
    await folder.close()
    throw failure
  }
}

/** Lends a folder for as long as `work` takes. */
export async function withFolder<T>(
  top: string,
  place: Place,
  work: (folder: FileHandle) => Promise<T>,
  making?: Ownership,
): Promise<T> {
  const folder = await openFolder(top, place, making)
  try {
    return await work(folder)
  } finally {
    await folder.close()
  }
}

/** A folder of our own, with exactly this mode. */
export async function makeOwnFolder(path: string, mode: number): Promise<void> {
  ensureFolder(path, mode)
  await chmod(path, mode)
}

const codes: Readonly<Record<string, readonly [FaultCode, string]>> = {
  ENOENT: ["not_found", "is not there"],
  ENOTDIR: ["invalid", "goes through something that is not a folder; links are not followed"],
  ELOOP: ["invalid", "is a link; links are not followed"],
  ENXIO: ["invalid", "is not a file"],
  EISDIR: ["invalid", "is a folder"],
  EEXIST: ["conflict", "is there already"],
  ENOTEMPTY: ["conflict", "is not empty"],
  EINVAL: ["invalid", "cannot be put into itself"],
  EACCES: ["forbidden", "belongs to the sandbox, and may not be touched from outside"],
  EPERM: ["forbidden", "belongs to the sandbox, and may not be touched from outside"],
  ENOSPC: ["limit", "does not fit: the workspace is full"],
  // EDQUOT, which Node has no name for.
  "Unknown system error -122": ["limit", "does not fit: the workspace is full"],
  ENAMETOOLONG: ["invalid", "has too long a name"],
}

/** The operating system's words into ours. */
export function fileFault(thrown: unknown, path: string): unknown {
  const [code, why] = codes[errnoOf(thrown)] ?? []
  return code === undefined ? thrown : new Fault(code, `"${path}" ${why}`, { cause: thrown, subject: `file:${path}` })
}
