import { execFile } from "node:child_process"
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  futimesSync,
  lchownSync,
  linkSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  openSync,
  rmdirSync,
  symlinkSync,
  unlinkSync,
  writeSync,
} from "node:fs"
import { promisify } from "node:util"
import { errnoOf } from "@warren/base/fault.ts"
import type { ArchiveLimits } from "../limits.ts"
import { refused, shown, tooMuch, type TarEntry } from "../tar/entry.ts"
import type { TarReader } from "../tar/reader.ts"
import { FolderWalk, NotAFolder } from "./folder-walk.ts"
import { markerOf, placeOf, type Marker, type Place } from "./place.ts"
import { setXattrs, type Attributes } from "./xattrs.ts"

const run = promisify(execFile)
const newFile = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

export interface Extracted {
  readonly entries: number
  readonly fileBytes: number
  /** Folders that hide those of the same name below. */
  readonly opaque: readonly string[]
  /** Entries that were left out: devices and pipes, which a sandbox gets from us or not at all. */
  readonly skipped: readonly string[]
}

/** How many left-out entries are told by name. */
const skippedMax = 100
/** A sandbox has owners from 0 to 65535. Everybody else is nobody. */
const ownerMax = 65_535
const nobody = 65_534

interface ExtractOptions {
  readonly root: string
  readonly scratch: string
  readonly limits: ArchiveLimits
  readonly isOurs?: boolean | undefined
  readonly signal?: AbortSignal | undefined
}

interface Rights {
  readonly mode: number
  /** Undefined: whoever makes it. */
  readonly owner: { readonly uid: number; readonly gid: number } | undefined
}

type RightsOf = (entry: TarEntry) => Rights

const archiveRights: RightsOf = ({ kind, mode, uid, gid }) => ({
  mode: kind === "folder" ? mode : mode & 0o1777,
  owner: { uid: owner(uid), gid: owner(gid) },
})

/** Of an archive that is looked into and nothing more: all of it is ours, and none of it is hidden from us. */
const ownRights: RightsOf = ({ kind, mode }) => ({
  mode: kind === "folder" ? mode | 0o700 : (mode & 0o1777) | 0o400,
  owner: undefined,
})

/**
 * Turns an archive into a layer: the empty folder `root` is filled, `scratch` beside it may be used. Everything is reached by
 * descriptors below `root`; the archive's word is only ever taken for names and contents. Set-user-id and set-group-id are dropped
 * from files, and so are file capabilities: with no-new-privs they can do nothing inside, and they should not lie on the host.
 */
export async function extract(reader: TarReader, options: ExtractOptions): Promise<Extracted> {
  using layer = new Extraction(options.root, options.limits, options.isOurs ? ownRights : archiveRights)
  for (let entry = await reader.next(); entry; entry = await reader.next()) {
    options.signal?.throwIfAborted()
    await layer.add(entry, reader)
  }
  const opaque = await layer.finish(options.scratch)
  return { entries: reader.entries, fileBytes: layer.fileBytes, opaque, skipped: layer.skipped }
}

class Extraction implements Disposable {
  readonly skipped: string[] = []
  fileBytes = 0
  readonly #limits: ArchiveLimits
  readonly #rightsOf: RightsOf
  readonly #walk: FolderWalk
  /** For hard links: a path holds only until the next walk, and a link needs two. */
  readonly #targets: FolderWalk
  readonly #markers = new Map<string, { readonly entry: string; readonly marker: Marker }>()
  readonly #attributes = new Map<string, Attributes>()
  /** Set at the end: everything put into a folder changes its time. */
  readonly #folderTimes = new Map<string, { readonly place: Place; readonly mtime: number }>()

  constructor(root: string, limits: ArchiveLimits, rightsOf: RightsOf) {
    this.#limits = limits
    this.#rightsOf = rightsOf
    this.#walk = new FolderWalk(root)
    this.#targets = new FolderWalk(root)
    // As with every folder that the archive does not mention: the same archive gives the same layer at any time.
    this.#folderTimes.set("", { place: [], mtime: 0 })
  }

  async add(entry: TarEntry, reader: TarReader): Promise<void> {
    const place = placeOf(entry.name, entry.name, this.#limits)
    const marker = markerOf(entry.name, place)
    try {
      if (marker) return this.#mark(entry, marker)
      if (place.length === 0 && entry.kind !== "folder") throw refused(entry.name, "would replace the layer itself")
      if (entry.kind === "device" || entry.kind === "fifo") return this.#skip(entry)
      checkXattrs(entry)
      await this.#make(entry, place, reader)
    } catch (failure) {
      throw explained(entry.name, failure)
    }
  }

  /** What can only be done once everything is there. Says which folders are opaque. */
  async finish(scratch: string): Promise<string[]> {
    const opaque: string[] = []
    const whiteouts = new Whiteouts(scratch)
    for (const [path, { entry, marker }] of this.#markers) {
      try {
        const target = this.#walk.reach(marker.at, (at, made) => this.#madeFolder(at, made))
        const existing = marker.at.length === 0 ? undefined : lstatSync(target, { throwIfNoEntry: false })
        const isFolder = existing?.isDirectory() === true || marker.at.length === 0
        if (marker.kind === "opaque" && !existing && !isFolder) this.#newFolder(marker.at, target)
        if (marker.kind === "opaque" && existing && !isFolder) throw refused(entry, "is in something that is no folder")
        if (marker.kind === "opaque" || isFolder) {
          opaque.push(path.slice(path.indexOf(":") + 1))
          this.#attribute(entry, marker.at, new Map([["user.overlay.opaque", Buffer.from("y")]]))
        } else if (!existing) await whiteouts.put(target)
      } catch (failure) {
        throw explained(entry, failure)
      }
    }
    await setXattrs(this.#walk, [...this.#attributes.values()])
    for (const { place, mtime } of this.#folderTimes.values()) {
      const path = this.#walk.find(place)
      if (path) lutimesSync(path, mtime, mtime)
    }
    return [...new Set(opaque)]
  }

  [Symbol.dispose](): void {
    this.#walk[Symbol.dispose]()
    this.#targets[Symbol.dispose]()
  }

  #mark(entry: TarEntry, marker: Marker): void {
    if (entry.kind !== "file" || entry.sizeBytes > 0) throw refused(entry.name, "takes away, but is no empty file")
    this.#markers.set(`${marker.kind}:${marker.at.join("/")}`, { entry: entry.name, marker })
  }

  #skip(entry: TarEntry): void {
    if (this.skipped.length < skippedMax) this.skipped.push(shown(entry.name))
  }

  async #make(entry: TarEntry, place: Place, reader: TarReader): Promise<void> {
    const path = this.#walk.reach(place, (at, made) => this.#madeFolder(at, made))
    if (entry.kind === "folder") this.#folder(entry, place, path)
    else {
      // Before anything is taken away: the link's target may be what it would replace.
      const target = entry.kind === "hardlink" ? this.#linkTarget(entry, place) : undefined
      this.#clear(entry, place, path)
      if (target) linkSync(target, path)
      else if (entry.kind === "symlink") this.#symlink(entry, path)
      else await this.#file(entry, path, reader)
    }
    if (entry.kind === "file" || entry.kind === "folder") this.#attribute(entry.name, place, entry.xattrs)
  }

  #folder(entry: TarEntry, place: Place, path: Buffer): void {
    const existing = lstatSync(path, { throwIfNoEntry: false })
    if (existing && !existing.isDirectory()) {
      unlinkSync(path)
      this.#attributes.delete(place.join("/"))
    }
    if (!existing?.isDirectory()) mkdirSync(path, 0o700)
    const { mode, owner: given } = this.#rightsOf(entry)
    // A folder for certain now, and nobody but us can change that: neither call can be led astray.
    if (given) chownSync(path, given.uid, given.gid)
    chmodSync(path, mode)
    this.#folderTimes.set(place.join("/"), { place, mtime: entry.mtime })
  }

  #symlink(entry: TarEntry, path: Buffer): void {
    const { target } = entry
    if (target === "" || target.includes("\0")) throw refused(entry.name, "is a link to no name")
    if (target.length > this.#limits.pathBytesMax) throw tooMuch(entry.name, "is a link to a name that is too long")
    symlinkSync(Buffer.from(target, "latin1"), path)
    const { owner: given } = this.#rightsOf(entry)
    if (given) lchownSync(path, given.uid, given.gid)
    lutimesSync(path, entry.mtime, entry.mtime)
  }

  async #file(entry: TarEntry, path: Buffer, reader: TarReader): Promise<void> {
    const file = openSync(path, newFile, 0o600)
    try {
      for await (const chunk of reader.body()) {
        for (let at = 0; at < chunk.length;) at += writeSync(file, chunk, at)
        this.fileBytes += chunk.length
      }
      const { mode, owner: given } = this.#rightsOf(entry)
      if (given) fchownSync(file, given.uid, given.gid)
      fchmodSync(file, mode)
      futimesSync(file, entry.mtime, entry.mtime)
    } finally {
      closeSync(file)
    }
  }

  #linkTarget(entry: TarEntry, place: Place): Buffer {
    const to = placeOf(entry.name, entry.target, this.#limits)
    if (to.join("/") === place.join("/")) throw refused(entry.name, "is a hard link to itself")
    const path = to.length === 0 ? undefined : this.#targets.find(to)
    const stats = path && lstatSync(path, { throwIfNoEntry: false })
    if (!path || !stats)
      throw refused(entry.name, `is a hard link to ${shown(entry.target)}, which is not in its layer`)
    if (!stats.isFile() && !stats.isSymbolicLink()) {
      throw refused(entry.name, `is a hard link to ${shown(entry.target)}, which is no file`)
    }
    return path
  }

  /** Takes away what an earlier entry of the same name made. */
  #clear(entry: TarEntry, place: Place, path: Buffer): void {
    const existing = lstatSync(path, { throwIfNoEntry: false })
    if (!existing) return
    if (existing.isDirectory()) {
      this.#targets.forget()
      rmdirSync(path)
      this.#folderTimes.delete(place.join("/"))
    } else unlinkSync(path)
    this.#attributes.delete(place.join("/"))
  }

  #newFolder(at: Place, path: Buffer): void {
    mkdirSync(path, 0o755)
    this.#madeFolder(at, path)
  }

  /** A folder the archive did not mention. */
  #madeFolder(at: Place, path: Buffer): void {
    chmodSync(path, 0o755)
    this.#folderTimes.set(at.join("/"), { place: at, mtime: 0 })
  }

  #attribute(entry: string, place: Place, values: ReadonlyMap<string, Buffer>): void {
    const kept = [...values].filter(([name]) => name.startsWith("user."))
    if (kept.length === 0) return
    const key = place.join("/")
    const all = new Map([...(this.#attributes.get(key)?.values ?? []), ...kept])
    this.#attributes.set(key, { entry, place, values: all })
  }
}

/** Overlayfs reads a character device 0:0 as "there is nothing". Node cannot make one; but it can link one to many names. */
class Whiteouts {
  readonly #scratch: string
  #node: string | undefined
  #made = 0

  constructor(scratch: string) {
    this.#scratch = scratch
  }

  async put(path: Buffer): Promise<void> {
    this.#node ??= await this.#make()
    try {
      linkSync(this.#node, path)
    } catch (failure) {
      // So many names and no more: another one.
      if (errnoOf(failure) !== "EMLINK") throw failure
      this.#node = await this.#make()
      linkSync(this.#node, path)
    }
  }

  async #make(): Promise<string> {
    const path = `${this.#scratch}/whiteout-${this.#made++}`
    await run("mknod", ["--mode=000", path, "c", "0", "0"])
    return path
  }
}

function owner(id: number): number {
  return id > ownerMax ? nobody : id
}

/** Attributes that would steer overlayfs itself are nobody's business but ours. */
function checkXattrs({ name, xattrs }: TarEntry): void {
  for (const key of xattrs.keys()) {
    if (/^(?:user|trusted)\.overlay\./.test(key))
      throw refused(name, `has the attribute ${key}, which is overlayfs's own`)
    if (!/^[\x21-\x3c\x3e-\x7e]{1,255}$/.test(key)) throw refused(name, "has an attribute with a strange name")
  }
}

/** The operating system's word about an entry, with its name. */
function explained(name: string, failure: unknown): unknown {
  if (failure instanceof NotAFolder) {
    return refused(name, `leads through ${shown(failure.place.join("/"))}, which is not a folder`, failure)
  }
  const errno = errnoOf(failure)
  if (errno === "ENOTEMPTY") return refused(name, "would replace a folder that is not empty", failure)
  if (errno === "ENOSPC" || errno === "EDQUOT") return tooMuch(name, "does not fit on the disk")
  if (["EEXIST", "EISDIR", "ENOTDIR", "ELOOP", "ENAMETOOLONG", "EINVAL", "EPERM"].includes(errno)) {
    return refused(name, `cannot be made (${errno})`, failure)
  }
  return failure
}
