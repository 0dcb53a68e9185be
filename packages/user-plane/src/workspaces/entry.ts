import type { BigIntStats } from "node:fs"
import { lstat, readlink, type FileHandle } from "node:fs/promises"
import type { WorkspaceEntry } from "@warren/protocol/user-plane/workspaces.ts"
import type { z } from "zod"
import { inside } from "./folder-handle.ts"

export type Entry = z.output<typeof WorkspaceEntry>

/** What has this name in a folder. */
export async function entryIn(folder: FileHandle, name: string, path: string): Promise<Entry> {
  const at = inside(folder, name)
  const stats = await lstat(at, { bigint: true })
  const target = stats.isSymbolicLink() ? await readlink(at).catch(() => undefined) : undefined
  return entryOf(stats, path, target)
}

export function entryOf(stats: BigIntStats, path: string, target?: string): Entry {
  return {
    path,
    name: path.slice(path.lastIndexOf("/") + 1),
    kind: kindOf(stats),
    sizeBytes: Number(stats.size),
    modifiedAt: new Date(Number(stats.mtimeMs)).toISOString(),
    mode: Number(stats.mode) & 0o7777,
    ...(target === undefined ? {} : { target }),
    etag: etagOf(stats),
  }
}

/** A file that was replaced has another number; one that was written to has another time or size. */
function etagOf({ ino, mtimeNs, size }: BigIntStats): string {
  return [ino, mtimeNs, size].map((part) => part.toString(36)).join("-")
}

function kindOf(stats: BigIntStats): Entry["kind"] {
  if (stats.isFile()) return "file"
  if (stats.isDirectory()) return "folder"
  return stats.isSymbolicLink() ? "link" : "other"
}
