import type { WritableEntry } from "../tar/writer.ts"
import type { MergedView } from "./merged.ts"

/**
 * Entries for the folders on the way to what a new layer holds, as they are below: a layer's word about a folder counts for all of
 * them. Folders that are not there yet are left to whoever makes them.
 */
export function parentsOf(image: MergedView, paths: readonly string[]): WritableEntry[] {
  const places = new Set(paths.flatMap((path) => path.split("/").map((_, depth, all) => all.slice(0, depth).join("/"))))
  return [...places].toSorted().flatMap((path) => {
    const stats = image.stat(path === "" ? [] : path.split("/"))
    if (!stats?.isDirectory()) return []
    const { mode, uid, gid, mtimeMs } = stats
    const name = path === "" ? "./" : `${path}/`
    return [{ name, kind: "folder", mode: mode & 0o7777, uid, gid, mtime: Math.floor(mtimeMs / 1000) }]
  })
}
