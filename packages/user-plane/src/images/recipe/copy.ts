import { lstatSync } from "node:fs"
import { FolderWalk, NotAFolder } from "../layer/folder-walk.ts"
import type { ImageView } from "../layer/merged.ts"
import { pack, packOne } from "../layer/pack.ts"
import { parentsOf } from "../layer/parents.ts"
import { placeOf, type Place } from "../layer/place.ts"
import { finish, newHash, type Digest } from "../digest.ts"
import { archiveLimits } from "../limits.ts"
import { archiveEnd, writeHeader } from "../tar/writer.ts"
import { mistake, type Step } from "./recipe.ts"

interface Copy {
  readonly context: string
  readonly from: readonly string[]
  /** Absolute, in the image. With a slash at the end it is a folder. */
  readonly to: string
  readonly owner: { readonly uid: number; readonly gid: number }
}

interface Source {
  readonly place: Place
  readonly isFolder: boolean
}

/** An archive for an image: where its entries go depends on what is there already. Without an image, its contents alone. */
export type ForImage = (view: ImageView | undefined) => AsyncIterable<Uint8Array>

/** What COPY puts into a layer. Files of the context are reached without following links; its links stay links. */
export async function copyArchive({ context, from, to, owner }: Copy, step: Step): Promise<ForImage> {
  const sources = await Promise.resolve(from.map((name) => sourceOf(context, name, step)))
  const isInto = to.endsWith("/") || sources.length > 1
  return async function* (view) {
    const asked = placeOf(to, to.replace(/^\/+/, "") || ".", archiveLimits)
    const target = view ? await view.resolve(asked) : asked
    const isFolder = isInto || (await view?.stat(target))?.kind === "folder"
    for (const { place, isFolder: isTree } of sources) {
      // A folder's contents go to the target; a file goes into it, or becomes it.
      const base = isTree || !isFolder ? target : [...target, place.at(-1) ?? ""]
      if (view) yield* folders(view, isTree ? [...base, "x"] : base)
      yield* isTree
        ? pack(context, { owner, from: place, to: base })
        : packOne(context, { owner, from: place, to: base })
    }
    yield archiveEnd
  }
}

/** The folders of a path, as an archive; undefined when they are all there. */
export async function folderArchive(view: ImageView, path: string): Promise<AsyncIterable<Uint8Array> | undefined> {
  const place = await view.resolve(placeOf(path, path.replace(/^\/+/, "") || ".", archiveLimits))
  if (place.length === 0 || (await view.stat(place))?.kind === "folder") return undefined
  return (async function* () {
    yield* folders(view, [...place, "x"])
    yield archiveEnd
  })()
}

export async function hashOf(archive: ForImage): Promise<Digest> {
  const hash = newHash()
  for await (const chunk of archive(undefined)) hash.update(chunk)
  return finish(hash)
}

/** Every folder above a place: as it is in the image, or new. */
async function* folders(view: ImageView, place: Place): AsyncGenerator<Buffer, void, void> {
  for (const entry of await parentsOf(view, [place.join("/")])) yield writeHeader(entry)
  for (const [depth] of place.entries()) {
    const above = place.slice(0, depth)
    if (depth > 0 && !(await view.stat(above)))
      yield writeHeader({ name: `${above.join("/")}/`, kind: "folder", mode: 0o755 })
  }
}

function sourceOf(context: string, name: string, step: Step): Source {
  using walk = new FolderWalk(context)
  try {
    const place = placeOf(name, name.replace(/^\/+/, "") || ".", archiveLimits)
    const path = place.length === 0 ? undefined : walk.find(place)
    const stats = path && lstatSync(path, { throwIfNoEntry: false })
    if (place.length > 0 && !stats) throw mistake(step, `there is no ${JSON.stringify(name)} to copy`)
    return { place, isFolder: stats?.isDirectory() ?? true }
  } catch (failure) {
    if (failure instanceof NotAFolder) throw mistake(step, `${JSON.stringify(name)} leads through a link`)
    throw failure
  }
}
