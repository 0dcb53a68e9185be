import { appendFileSync, existsSync, renameSync, statSync } from "node:fs"

const bytesMax = 8 * 1024 * 1024
const mode = 0o600

/** The files of a log, the newest first: `x.log`, `x.log.1`, … */
export function logFilesOf(path: string, older: number): string[] {
  return [path, ...Array.from({ length: older }, (_, index) => `${path}.${index + 1}`)]
}

/**
 * Appends lines to a file; when it is full it becomes `.1` (and that `.2`, …) and a new one begins, so that there are
 * never more than `older` besides it.
 */
export function logFile(path: string, older = 1, fullBytes = bytesMax): (line: string) => void {
  let bytes = sizeOf(path)
  return (line) => {
    if (bytes > fullBytes) {
      const files = logFilesOf(path, older)
      for (let index = older; index > 0; index--) rename(files[index - 1] ?? path, files[index] ?? path)
      bytes = 0
    }
    appendFileSync(path, line, { mode })
    bytes += Buffer.byteLength(line)
  }
}

function rename(from: string, to: string): void {
  if (existsSync(from)) renameSync(from, to)
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}
