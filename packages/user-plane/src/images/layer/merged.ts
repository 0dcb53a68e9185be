import { closeSync, constants, fstatSync, openSync, readFileSync, readlinkSync, type Stats } from "node:fs"
import { Fault } from "@warren/base/fault.ts"
import { FolderWalk, NotAFolder } from "./folder-walk.ts"
import type { Place } from "./place.ts"

export interface LayerView {
  readonly folder: string
  readonly opaque: readonly string[]
}

/** What one name of an image is. */
export interface Seen {
  readonly kind: "file" | "folder" | "link" | "other"
  readonly mode: number
  readonly uid: number
  readonly gid: number
  readonly mtimeMs: number
}

/** An image to look at, wherever its files are. */
export interface ImageView extends AsyncDisposable {
  stat(place: Place): Promise<Seen | undefined>
  link(place: Place): Promise<string>
  /** Where a name leads once every link in it is followed, inside the image; the last part need not be there. */
  resolve(place: Place): Promise<Place>
  /** A plain file's text; undefined when there is none there. */
  text(place: Place, bytesMax: number): Promise<string | undefined>
}

interface Found {
  readonly stats: Stats
  readonly walk: FolderWalk
}

/** The kernel's own patience. */
const linksMax = 40
const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** Layers as a sandbox will see them, without mounting anything and without following any link. */
export class MergedView implements ImageView {
  readonly #layers: readonly { readonly walk: FolderWalk; readonly opaque: ReadonlySet<string> }[]

  /** The top one first. */
  constructor(layers: readonly LayerView[]) {
    this.#layers = layers.map(({ folder, opaque }) => ({ walk: new FolderWalk(folder), opaque: new Set(opaque) }))
  }

  async stat(place: Place): Promise<Seen | undefined> {
    const found = await Promise.resolve(this.#find(place))
    return found && seen(found.stats)
  }

  async link(place: Place): Promise<string> {
    return await Promise.resolve(this.#link(place))
  }

  async resolve(place: Place): Promise<Place> {
    let todo = [...place]
    let done: string[] = []
    for (let links = 0; todo.length > 0;) {
      const [part = "", ...rest] = todo
      todo = rest
      if (part === "" || part === ".") continue
      const here = part === ".." ? done.slice(0, -1) : [...done, part]
      if (part === ".." || !this.#find(here)?.stats.isSymbolicLink()) done = here
      else {
        if (++links > linksMax) throw new Fault("invalid", `/${place.join("/")} of the image leads in circles`)
        const target = this.#link(here)
        if (target.startsWith("/")) done = []
        todo = [...target.split("/"), ...todo]
      }
    }
    return await Promise.resolve(done)
  }

  async text(place: Place, bytesMax: number): Promise<string | undefined> {
    const found = await Promise.resolve(this.#find(place))
    const path = found?.stats.isFile() ? found.walk.find(place) : undefined
    if (!path) return undefined
    const file = openSync(path, readFlags)
    try {
      if (fstatSync(file).size > bytesMax)
        throw new Fault("limit", `/${place.join("/")} is larger than ${bytesMax} bytes`)
      return readFileSync(file, "latin1")
    } finally {
      closeSync(file)
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    for (const { walk } of this.#layers) walk[Symbol.dispose]()
    return Promise.resolve()
  }

  #link(place: Place): string {
    const path = this.#find(place)?.walk.find(place)
    return path ? readlinkSync(path, "latin1") : ""
  }

  #find(place: Place): Found | undefined {
    for (const { walk, opaque } of this.#layers) {
      const stats = look(walk, place)
      if (stats === "hidden") return undefined
      if (stats) return isWhiteout(stats) ? undefined : { stats, walk }
      const isOpaque = place.some((_, depth) => opaque.has(place.slice(0, depth).join("/")))
      if (isOpaque || this.#hides(walk, place)) return undefined
    }
    return undefined
  }

  /** Whether a layer that does not have a name has nevertheless taken away a folder on the way to it. */
  #hides(walk: FolderWalk, place: Place): boolean {
    return place.some((_, depth) => {
      const stats = depth === 0 ? undefined : look(walk, place.slice(0, depth))
      return stats !== undefined && (stats === "hidden" || !stats.isDirectory())
    })
  }
}

function look(walk: FolderWalk, place: Place): Stats | "hidden" | undefined {
  try {
    return walk.stat(place)
  } catch (failure) {
    if (failure instanceof NotAFolder) return "hidden"
    throw failure
  }
}

function seen(stats: Stats): Seen {
  const { mode, uid, gid, mtimeMs } = stats
  const others = stats.isSymbolicLink() ? "link" : "other"
  const kind = stats.isDirectory() ? "folder" : stats.isFile() ? "file" : others
  return { kind, mode, uid, gid, mtimeMs }
}

function isWhiteout(stats: Stats): boolean {
  return stats.isCharacterDevice() && stats.rdev === 0
}
