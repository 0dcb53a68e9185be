import { mkdtemp, readdir, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** A folder of a test's own; gone with everything in it when the test ends. */
export class TempFolder implements AsyncDisposable {
  readonly path: string

  private constructor(path: string) {
    this.path = path
  }

  static async make(): Promise<TempFolder> {
    return new TempFolder(await mkdtemp(join(tmpdir(), "warren-")))
  }

  at(...names: string[]): string {
    return join(this.path, ...names)
  }

  /** What lies directly inside, in order. */
  async names(): Promise<string[]> {
    return (await readdir(this.path)).toSorted()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.path, { recursive: true, force: true })
  }
}
