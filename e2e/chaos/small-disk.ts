import { execFileSync } from "node:child_process"
import { existsSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const pageBytes = 4_096

/** A file system in memory, which is filled, emptied, and made read-only. */
export class SmallDisk implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), "wq-"))

  constructor(megabytes: number) {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m,mode=0700`, "tmpfs", this.folder])
  }

  /** Leaves room for so many pages. */
  fill(pagesLeft: number): void {
    this.empty()
    const { bavail, bsize } = statfsSync(this.folder)
    const bytes = bavail * bsize - pagesLeft * pageBytes
    if (bytes > 0) writeFileSync(this.#ballast, Buffer.alloc(bytes))
  }

  empty(): void {
    if (existsSync(this.#ballast)) rmSync(this.#ballast)
  }

  /** Of those that have a file open for writing a file system says that it is busy: then as if by a failing disk. */
  allow(writing: boolean): void {
    execFileSync("mount", ["-o", `remount,${writing ? "rw" : "ro"}`, this.folder])
  }

  get #ballast(): string {
    return join(this.folder, "ballast")
  }

  [Symbol.dispose](): void {
    execFileSync("umount", ["-l", this.folder])
    rmSync(this.folder, { recursive: true, force: true })
  }
}
