import { lstatSync, readdirSync, utimesSync } from "node:fs"
import { join } from "node:path"

/** Everything about a tree that an archive could have changed, or read. */
export function portrait(path: string): string[] {
  const stats = lstatSync(path)
  const { mode, uid, gid, size, nlink, atimeMs, mtimeMs, ino } = stats
  const own = [path, mode, uid, gid, stats.isDirectory() ? "" : size, nlink, atimeMs, mtimeMs, ino].join(" ")
  const children = stats.isDirectory() ? readdirSync(path) : []
  // Looking leaves a trace of its own; it is wiped out for the next look.
  if (stats.isDirectory()) utimesSync(path, 1, stats.mtime)
  return [own, ...children.flatMap((name) => portrait(join(path, name)))]
}
