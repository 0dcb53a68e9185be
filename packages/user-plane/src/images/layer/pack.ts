import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  type Stats,
} from "node:fs"
import { refused } from "../tar/entry.ts"
import { archiveEnd, padding, writeHeader, type WritableEntry } from "../tar/writer.ts"
import { FolderWalk } from "./folder-walk.ts"
import { whiteoutName, type Place } from "./place.ts"
import { readXattrs } from "./xattrs.ts"

export interface PackOptions {
  /** Left out, with everything below. */
  readonly isLeftOut?: (path: string) => boolean
  readonly owner?: { readonly uid: number; readonly gid: number }
  /** Where it begins, from the folder on; a link on the way is refused. */
  readonly from?: Place
  /** What that is called in the archive. */
  readonly to?: Place
  /** Whether character devices and overlayfs's attributes mean what they mean in a writable layer. */
  readonly isUpper?: boolean
  /** Told of every entry. */
  readonly seen?: (entry: WritableEntry) => void
}

const pieceBytes = 256 * 1024
const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
const noXattrs: ReadonlyMap<string, ReadonlyMap<string, Buffer>> = new Map()

/** Pieces after which others get their turn: reading and writing files here does not wait for anything. */
const piecesPerTurn = 64

/** What is below a folder as an archive, in the order of names, without its end. Links are packed as links; sockets, pipes and devices are not. */
export async function* pack(folder: string, options: PackOptions = {}): AsyncGenerator<Buffer, void, void> {
  const xattrs = options.isUpper ? await readXattrs(folder) : noXattrs
  using packing = new Packing(folder, options, xattrs)
  yield* inTurns(packing.below(options.from ?? []))
}

/** One thing of a folder, as `to`. */
export async function* packOne(
  folder: string,
  options: Required<Pick<PackOptions, "from" | "to" | "owner">>,
): AsyncGenerator<Buffer, void, void> {
  using packing = new Packing(folder, options, noXattrs)
  yield* inTurns(packing.entry(options.from))
}

async function* inTurns(pieces: Iterable<Buffer>): AsyncGenerator<Buffer, void, void> {
  let count = 0
  for (const piece of pieces) {
    if (++count % piecesPerTurn === 0) await new Promise(setImmediate)
    yield piece
  }
}

/** A stopped sandbox's writable layer as the archive of an image's layer. */
export async function* packUpper(
  folder: string,
  seen?: (entry: WritableEntry) => void,
): AsyncGenerator<Buffer, void, void> {
  yield* pack(folder, { isUpper: true, isLeftOut: isOurs, ...(seen ? { seen } : {}) })
  yield archiveEnd
}

/** Where things are mounted only while an image is made. */
export const suppliesAt = "/run/supplies"
const ours: ReadonlySet<string> = new Set(["run/warren", suppliesAt.slice(1)])

/** What is part of every sandbox, or of those in which images are made, and of no image. */
export function isOurs(path: string): boolean {
  return ours.has(path)
}

class Packing implements Disposable {
  readonly #walk: FolderWalk
  readonly #options: PackOptions
  readonly #xattrs: ReadonlyMap<string, ReadonlyMap<string, Buffer>>
  /** The first name of files that have several. */
  readonly #links = new Map<number, string>()

  constructor(folder: string, options: PackOptions, xattrs: ReadonlyMap<string, ReadonlyMap<string, Buffer>>) {
    this.#walk = new FolderWalk(folder)
    this.#options = options
    this.#xattrs = xattrs
  }

  *below(place: Place): Generator<Buffer, void, void> {
    const path = this.#walk.find([...place, "."])
    if (!path) return
    for (const name of readdirSync(path, { encoding: "latin1" }).toSorted()) yield* this.entry([...place, name])
  }

  *entry(place: Place): Generator<Buffer, void, void> {
    const inside = place.join("/")
    const path = this.#walk.find(place)
    if (!path || this.#options.isLeftOut?.(inside)) return
    const stats = lstatSync(path)
    const at = [...(this.#options.to ?? []), ...place.slice(this.#options.from?.length ?? 0)]
    if (place.at(-1)?.startsWith(".wh.")) throw refused(inside, "has a name that means something else in a layer")
    const about = { ...this.#meta(stats), xattrs: this.#kept(inside) }
    if (stats.isDirectory()) {
      yield this.#header({ name: `${at.join("/")}/`, kind: "folder", ...about })
      if (this.#isOpaque(inside)) yield this.#header({ name: whiteoutName({ kind: "opaque", at }), kind: "file" })
      yield* this.below(place)
    } else if (stats.isSymbolicLink()) {
      yield this.#header({ name: at.join("/"), kind: "symlink", ...about, target: readlinkSync(path, "latin1") })
    } else if (stats.isFile()) {
      const first = this.#links.get(stats.ino)
      if (first !== undefined) return yield this.#header({ name: at.join("/"), kind: "hardlink", target: first })
      if (stats.nlink > 1) this.#links.set(stats.ino, at.join("/"))
      yield* content(path, { name: at.join("/"), kind: "file", ...about }, (entry) => this.#header(entry))
    } else if (this.#options.isUpper && stats.isCharacterDevice() && stats.rdev === 0) {
      yield this.#header({ name: whiteoutName({ kind: "whiteout", at }), kind: "file" })
    }
  }

  [Symbol.dispose](): void {
    this.#walk[Symbol.dispose]()
  }

  #header(entry: WritableEntry): Buffer {
    this.#options.seen?.(entry)
    return writeHeader(entry)
  }

  #meta(stats: Stats): Pick<WritableEntry, "mode" | "uid" | "gid" | "mtime"> {
    const { mode, uid, gid, mtimeMs } = stats
    // What may change the user of a program is not kept in layers; of a folder it says something else.
    const kept = this.#options.isUpper && stats.isFile() ? 0o1777 : 0o7777
    return { mode: mode & kept, uid, gid, mtime: Math.floor(mtimeMs / 1000), ...this.#options.owner }
  }

  #kept(path: string): ReadonlyMap<string, Buffer> {
    return new Map([...(this.#xattrs.get(path) ?? [])].filter(([name]) => !name.startsWith("user.overlay.")))
  }

  #isOpaque(path: string): boolean {
    return this.#xattrs.get(path)?.get("user.overlay.opaque")?.toString() === "y"
  }
}

function* content(
  path: Buffer,
  entry: WritableEntry,
  header: (entry: WritableEntry) => Buffer,
): Generator<Buffer, void, void> {
  const file = openSync(path, readFlags)
  try {
    const stats = fstatSync(file)
    // Somebody may have put something else there since.
    if (!stats.isFile()) throw refused(entry.name, "is no file any more")
    const { size } = stats
    yield header({ ...entry, sizeBytes: size })
    for (let at = 0; at < size;) {
      const piece = Buffer.alloc(Math.min(pieceBytes, size - at))
      const bytes = readSync(file, piece, 0, piece.length, at)
      if (bytes === 0) throw refused(entry.name, "shrank while it was read")
      yield piece.subarray(0, bytes)
      at += bytes
    }
    yield padding(size)
  } finally {
    closeSync(file)
  }
}
