import { randomBytes } from "node:crypto"
import { closeSync, existsSync, fchownSync, openSync, rmSync, writeSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

interface UnnamedFile extends Disposable {
  readonly fd: number
}

/**
 * A text in memory that only who is given its descriptor can read: it has no name, and nothing of it reaches a disk. (A pipe
 * from Node is a socket, which its receiver could not open by a path.)
 */
export function unnamedFile(text: string, owner?: { uid: number; gid: number }): UnnamedFile {
  const memory = "/dev/shm"
  const path = join(existsSync(memory) ? memory : tmpdir(), `.warren-${randomBytes(12).toString("hex")}`)
  const fd = openSync(path, "wx+", 0o600)
  rmSync(path)
  if (owner) fchownSync(fd, owner.uid, owner.gid)
  writeSync(fd, text)
  return { fd, [Symbol.dispose]: () => closeSync(fd) }
}
