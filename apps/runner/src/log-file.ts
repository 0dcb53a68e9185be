import { appendFileSync, renameSync, statSync } from "node:fs"

const bytesMax = 8 * 1024 * 1024
const mode = 0o600

/** Appends lines to a file; when it is full it becomes `.1` and a new one begins, so two files are all there ever is. */
export function logFile(path: string): (line: string) => void {
  let bytes = sizeOf(path)
  return (line) => {
    if (bytes > bytesMax) {
      renameSync(path, `${path}.1`)
      bytes = 0
    }
    appendFileSync(path, line, { mode })
    bytes += Buffer.byteLength(line)
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}
