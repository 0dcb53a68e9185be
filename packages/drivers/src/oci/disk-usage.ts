import { lstat, opendir } from "node:fs/promises"
import { join } from "node:path"

const blockBytes = 512

/** Bytes on disk of everything below a folder. What vanishes while it is being counted does not count. */
export async function diskUsage(folder: string): Promise<number> {
  let bytes = 0
  const pending = [folder]
  const seen = new Set<number>()
  for (let at = pending.pop(); at !== undefined; at = pending.pop()) {
    for await (const entry of await opendir(at).catch(() => [])) {
      const path = join(at, entry.name)
      const stat = await lstat(path).catch(() => undefined)
      if (!stat) continue
      if (stat.isDirectory()) pending.push(path)
      // A file with two names is there once.
      if (stat.nlink > 1 && !stat.isDirectory()) {
        if (seen.has(stat.ino)) continue
        seen.add(stat.ino)
      }
      bytes += stat.blocks * blockBytes
    }
  }
  return bytes
}
