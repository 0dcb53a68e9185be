import { closeSync, constants, lstatSync, mkdirSync, openSync, type Stats } from "node:fs"
import { errnoOf } from "@warren/base/fault.ts"
import type { Place } from "./place.ts"

const folderFlags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW

/** Something on the way is a link or a file. */
export class NotAFolder extends Error {
  readonly place: Place

  constructor(place: Place) {
    super(`${place.join("/")} is not a folder`)
    this.place = place
  }
}

/**
 * Folders below one folder, reached by descriptors, one name at a time and never through a link: whatever lies in the tree, no
 * path of it leads out. The folders of the last walk stay open, because the next one is usually their neighbour.
 */
export class FolderWalk implements Disposable {
  readonly #top: number
  #open: { readonly name: string; readonly descriptor: number }[] = []

  constructor(top: string) {
    this.#top = openSync(top, folderFlags)
  }

  /** A path for one call: the last name inside its folder, which is held open. Undefined when its folder is not there. */
  find(place: Place): Buffer | undefined {
    const folder = this.#walk(place.slice(0, -1), undefined)
    return folder === undefined ? undefined : inside(folder, place.at(-1) ?? ".")
  }

  /** The same, making folders that are missing. */
  reach(place: Place, made: (at: Place, path: Buffer) => void): Buffer {
    return inside(this.#walk(place.slice(0, -1), made) ?? this.#top, place.at(-1) ?? ".")
  }

  stat(place: Place): Stats | undefined {
    const path = this.find(place)
    return path && lstatSync(path, { throwIfNoEntry: false })
  }

  /** To be called when a folder goes away or is replaced: nobody may walk into the old one. */
  forget(): void {
    for (const { descriptor } of this.#open) closeSync(descriptor)
    this.#open = []
  }

  [Symbol.dispose](): void {
    this.forget()
    closeSync(this.#top)
  }

  #walk(place: Place, made: ((at: Place, path: Buffer) => void) | undefined): number | undefined {
    let same = 0
    while (same < place.length && this.#open[same]?.name === place[same]) same++
    for (const { descriptor } of this.#open.splice(same)) closeSync(descriptor)
    for (const name of place.slice(same)) {
      const path = inside(this.#open.at(-1)?.descriptor ?? this.#top, name)
      const at = place.slice(0, this.#open.length + 1)
      const descriptor = openFolder(path, at) ?? (made && make(path, at, made))
      if (descriptor === undefined) return undefined
      this.#open.push({ name, descriptor })
    }
    return this.#open.at(-1)?.descriptor ?? this.#top
  }
}

function inside(folder: number, name: string): Buffer {
  return Buffer.from(`/proc/self/fd/${folder}/${name}`, "latin1")
}

function make(path: Buffer, at: Place, made: (at: Place, path: Buffer) => void): number | undefined {
  mkdirSync(path, 0o755)
  made(at, path)
  return openFolder(path, at)
}

function openFolder(path: Buffer, at: Place): number | undefined {
  try {
    return openSync(path, folderFlags)
  } catch (failure) {
    const errno = errnoOf(failure)
    if (errno === "ENOENT") return undefined
    if (errno === "ENOTDIR" || errno === "ELOOP") throw new NotAFolder(at)
    throw failure
  }
}
