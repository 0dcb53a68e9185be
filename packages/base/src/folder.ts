import { mkdirSync } from "node:fs"

/**
 * Makes a folder, with those above it, unless it is there. Not in the platform's own way that waits: that one says of a disk that is full
 * that something is missing (`ENOENT`).
 */
export function ensureFolder(path: string, mode?: number): void {
  mkdirSync(path, { recursive: true, ...(mode === undefined ? {} : { mode }) })
}
