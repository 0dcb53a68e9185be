import type { WritableEntry } from "../tar/writer.ts"
import type { ImageView } from "./merged.ts"

/**
 * Entries for the folders on the way to what a new layer holds, as they are below: a layer's word about a folder counts for all of
 * them. Folders that are not there yet are left to whoever makes them.
 */
export async function parentsOf(image: ImageView, paths: readonly string[]): Promise<WritableEntry[]> {
  const places = new Set(paths.flatMap((path) => path.split("/").map((_, depth, all) => all.slice(0, depth).join("/"))))
  const entries: WritableEntry[] = []
  for (const path of [...places].toSorted()) {
    const seen = await image.stat(path === "" ? [] : path.split("/"))
    if (seen?.kind !== "folder") continue
    const { mode, uid, gid, mtimeMs } = seen
    const name = path === "" ? "./" : `${path}/`
    entries.push({ name, kind: "folder", mode: mode & 0o7777, uid, gid, mtime: Math.floor(mtimeMs / 1000) })
  }
  return entries
}
