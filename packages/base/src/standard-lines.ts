import { fstatSync, writeSync } from "node:fs"

/**
 * Writes lines to a standard stream of this process, for its log. Where they cannot be written, because the disk is full or nobody reads
 * any more, they are lost, and the process goes on.
 */
export function standardLines(stream: NodeJS.WritableStream & { readonly fd: number }): (line: string) => void {
  stream.on("error", () => undefined)
  if (!fstatSync(stream.fd).isFile()) return (line) => void stream.write(line)
  // Not through the stream: one that has failed is closed, and the disk may have room again.
  return (line) => {
    try {
      writeSync(stream.fd, line)
    } catch {
      // There is nowhere to say it.
    }
  }
}
