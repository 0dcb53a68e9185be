import { constants, lstatSync, readlinkSync } from "node:fs"
import { open, type FileHandle } from "node:fs/promises"
import { posix } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import { FolderWalk, NotAFolder } from "../layer/folder-walk.ts"
import { placeOf } from "../layer/place.ts"
import { archiveLimits } from "../limits.ts"
import { shown } from "../tar/entry.ts"

const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** Opens a plain file below a folder that others have filled. Docker's older archives link one layer to another: one such step is taken. */
export async function openBelow(folder: string, name: string): Promise<FileHandle> {
  using walk = new FolderWalk(folder)
  try {
    let place = placeOf(name, name, archiveLimits)
    let path = walk.find(place)
    const stats = path && lstatSync(path, { throwIfNoEntry: false })
    if (path && stats?.isSymbolicLink()) {
      const target = posix.join(place.slice(0, -1).join("/"), readlinkSync(path, "latin1"))
      place = placeOf(name, target, archiveLimits)
      path = walk.find(place)
    }
    if (!path) throw missing(name)
    const file = await open(path, flags)
    if ((await file.stat()).isFile()) return file
    await file.close()
    throw new Fault("invalid", `${shown(name)} in the archive is not a file`, { subject: `entry:${shown(name)}` })
  } catch (failure) {
    if (failure instanceof Fault) throw failure
    if (failure instanceof NotAFolder || failure instanceof Error) throw missing(name, failure)
    throw failure
  }
}

export async function readBelow(folder: string, name: string, bytesMax: number): Promise<Buffer> {
  const file = await openBelow(folder, name)
  try {
    if ((await file.stat()).size > bytesMax) throw new Fault("limit", `${shown(name)} is larger than ${bytesMax} bytes`)
    return await file.readFile()
  } finally {
    await file.close()
  }
}

function missing(name: string, cause?: unknown): Fault {
  return new Fault("invalid", `the archive has no file ${shown(name)}`, { subject: `entry:${shown(name)}`, cause })
}
