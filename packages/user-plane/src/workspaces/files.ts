import { randomBytes } from "node:crypto"
import { constants } from "node:fs"
import { link, lstat, open, opendir, rename, rmdir, unlink, type FileHandle } from "node:fs/promises"
import { join } from "node:path"
import { failpoint } from "@warren/base/failpoint.ts"
import { errnoOf, Fault } from "@warren/base/fault.ts"
import { entryIn, entryOf, type Entry } from "./entry.ts"
import { fileFault, inside, withFolder, type Ownership } from "./folder-handle.ts"
import { OpenFile, type ByteRange } from "./open-file.ts"
import { placeBelow, placeOf } from "./place.ts"
import { removeTree } from "./remove-tree.ts"

const entriesMax = 100_000
/** A file may hold anything; reading a pipe or a device that lies in its place must not wait for ever. */
const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY
const draftFlags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

export interface WriteOptions {
  /** Only over the file that has this etag. Other writers through this API wait; a sandbox does not. */
  readonly ifMatch?: string | undefined
  /** Only where nothing is. Holds against everybody. */
  readonly ifNew?: boolean
  readonly mode?: number | undefined
  readonly signal?: AbortSignal | undefined
}

interface FilesParts {
  /** What sandboxes see. */
  readonly top: string
  /** Beside it, on the same disk, where no sandbox can reach: drafts, and what is being removed. */
  readonly staging: string
  readonly ownership: Ownership
  /** Refuses when so much more does not fit. Called as bytes come. */
  checkRoom(moreBytes: number): Promise<void>
  /** So much more is there now. */
  wrote(bytes: number): void
  /** One after the other. */
  alone<T>(work: () => Promise<T>): Promise<T>
}

/**
 * The files of one workspace from the outside, while programs inside may do what they like with them. No link is followed, in
 * whichever part of a path. Several may write at once: a file is replaced as a whole, and the last one wins.
 */
export class WorkspaceFiles {
  readonly #parts: FilesParts

  constructor(parts: FilesParts) {
    this.#parts = parts
  }

  async stat(path: string): Promise<Entry> {
    const place = placeOf(path)
    if (place.length === 0) return this.#in(place, path, async (top) => entryOf(await top.stat({ bigint: true }), ""))
    const { folder, name } = placeBelow(path)
    return this.#in(folder, path, (handle) => entryIn(handle, name, place.join("/")))
  }

  /** By name, those after `after`. What vanishes meanwhile is left out. */
  async list(path: string, limit: number, after = ""): Promise<Entry[]> {
    const place = placeOf(path)
    return this.#in(place, path, async (folder) => {
      const names = (await namesIn(folder)).filter((name) => name > after).toSorted(byCode)
      const found: Entry[] = []
      for (const name of names) {
        if (found.length >= limit) break
        const entry = await entryIn(folder, name, [...place, name].join("/")).catch(unlessGone)
        if (entry) found.push(entry)
      }
      return found
    })
  }

  async mkdir(path: string): Promise<Entry> {
    const { place } = placeBelow(path)
    const read = async (folder: FileHandle): Promise<Entry> =>
      entryOf(await folder.stat({ bigint: true }), place.join("/"))
    return this.#in(place, path, read, this.#parts.ownership)
  }

  async move(from: string, to: string, replace: boolean): Promise<Entry> {
    const [source, target] = [placeBelow(from), placeBelow(to)]
    return this.#parts.alone(() =>
      this.#in(source.folder, from, (sourceFolder) =>
        this.#in(target.folder, to, async (targetFolder) => {
          const there = replace ? undefined : await lstat(inside(targetFolder, target.name)).catch(unlessGone)
          if (there) throw new Fault("conflict", `"${to}" is there already`, { hint: "ask for it to be replaced" })
          await rename(inside(sourceFolder, source.name), inside(targetFolder, target.name))
          await targetFolder.sync()
          return entryIn(targetFolder, target.name, target.place.join("/"))
        }),
      ),
    )
  }

  /** Whether there was something. A folder is gone at once, though it may take a while to take it apart. */
  async remove(path: string, isRecursive: boolean): Promise<boolean> {
    const { folder, name } = placeBelow(path)
    return this.#in(folder, path, async (handle) => {
      const at = inside(handle, name)
      const stats = await lstat(at).catch(unlessGone)
      if (!stats) return false
      // Whatever it is by now: neither of these goes through a link, nor removes what the other is for.
      if (!stats.isDirectory()) await unlink(at)
      else if (isRecursive) await this.#discard(at)
      else await rmdir(at)
      return true
    })
  }

  /** To be disposed of by the caller. */
  async openRead(path: string, range: ByteRange = {}): Promise<OpenFile> {
    const { folder, name, place } = placeBelow(path)
    return this.#in(folder, path, async (handle) => {
      const file = await open(inside(handle, name), readFlags)
      try {
        const stats = await file.stat({ bigint: true })
        if (!stats.isFile()) throw new Fault("invalid", `"${path}" is not a file`)
        return new OpenFile(file, entryOf(stats, place.join("/")), range)
      } catch (failure) {
        await file.close()
        throw failure
      }
    })
  }

  /** Every reader, and a machine that loses power, sees the old file or the new one. Folders above it are made. */
  async write(path: string, bytes: AsyncIterable<Uint8Array>, options: WriteOptions = {}): Promise<Entry> {
    const { folder, name, place } = placeBelow(path)
    const draft = join(this.#parts.staging, randomBytes(12).toString("hex"))
    try {
      await this.#fill(draft, bytes, options)
      failpoint("workspace/drafted")
      const put = (handle: FileHandle): Promise<Entry> => this.#put(draft, handle, name, place.join("/"), options)
      const entry = await this.#parts.alone(() => this.#in(folder, path, put, this.#parts.ownership))
      failpoint("workspace/written")
      this.#parts.wrote(entry.sizeBytes)
      return entry
    } catch (failure) {
      throw fileFault(failure, path)
    } finally {
      await unlink(draft).catch(unlessGone)
    }
  }

  async #fill(draft: string, bytes: AsyncIterable<Uint8Array>, { mode, signal }: WriteOptions): Promise<void> {
    const { id, fileMode } = this.#parts.ownership
    const file = await open(draft, draftFlags, 0o600)
    try {
      let written = 0
      for await (const chunk of bytes) {
        signal?.throwIfAborted()
        await this.#parts.checkRoom((written += chunk.byteLength))
        await file.writeFile(chunk)
      }
      await file.chmod((mode ?? fileMode) & 0o777)
      if (id !== undefined) await file.chown(id, id)
      await file.sync()
    } finally {
      await file.close()
    }
  }

  async #put(draft: string, folder: FileHandle, name: string, path: string, options: WriteOptions): Promise<Entry> {
    options.signal?.throwIfAborted()
    const at = inside(folder, name)
    const there = await entryIn(folder, name, path).catch(unlessGone)
    if (there?.kind === "folder") throw new Fault("invalid", `"${path}" is a folder`)
    if (options.ifMatch !== undefined && there?.etag !== options.ifMatch) {
      throw new Fault("conflict", `"${path}" is not as it was`, { hint: "read it again", subject: `file:${path}` })
    }
    // A link, unlike a rename, never replaces anything.
    if (options.ifNew) await link(draft, at)
    else await rename(draft, at)
    await folder.sync()
    return entryIn(folder, name, path)
  }

  /** Out of everybody's sight first, so that it is gone at once. */
  async #discard(path: Buffer): Promise<void> {
    const staging = await open(this.#parts.staging)
    const name = randomBytes(12).toString("hex")
    try {
      await rename(path, inside(staging, name))
      await removeTree(staging, name)
    } finally {
      await staging.close()
    }
  }

  async #in<T>(
    place: readonly string[],
    path: string,
    work: (folder: FileHandle) => Promise<T>,
    making?: Ownership,
  ): Promise<T> {
    try {
      return await withFolder(this.#parts.top, place, work, making)
    } catch (failure) {
      throw fileFault(failure, path)
    }
  }
}

async function namesIn(folder: FileHandle): Promise<string[]> {
  const names: string[] = []
  for await (const { name } of await opendir(`/proc/self/fd/${folder.fd}`)) {
    names.push(name)
    if (names.length > entriesMax) throw new Fault("limit", `there are more than ${entriesMax} entries in this folder`)
  }
  return names
}

function byCode(a: string, b: string): number {
  return a < b ? -1 : 1
}

function unlessGone(failure: unknown): undefined {
  if (errnoOf(failure) === "ENOENT") return undefined
  throw failure
}
