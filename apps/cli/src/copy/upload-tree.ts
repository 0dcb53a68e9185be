import { createReadStream } from "node:fs"
import { lstat, readdir, readlink, stat } from "node:fs/promises"
import { basename, join as joinHere, resolve } from "node:path"
import { posix } from "node:path"
import { errnoOf, Fault } from "@warren/base/fault.ts"
import type { InsideFiles } from "./inside.ts"
import type { Tally } from "./tally.ts"

const modeBits = 0o7777
/** What a new folder has inside, so that nobody needs to be asked to change it. */
const folderMode = 0o755

/** Brings a file or a folder in, with modes and links. */
export class UploadTree {
  readonly #files: InsideFiles
  readonly #tally: Tally

  constructor(files: InsideFiles, tally: Tally) {
    this.#files = files
    this.#tally = tally
  }

  async run(from: string, to: string): Promise<void> {
    // The one that was named is what it points to, as with cp; links below it stay links.
    const found = await stat(from).catch((cause: unknown) => {
      throw new Fault("not_found", `${from} cannot be read (${errnoOf(cause)})`, { cause })
    })
    const isInto = to.endsWith("/") || (await this.#files.statIfAny(to))?.type === "dir"
    const target = isInto ? posix.join(to, basename(resolve(from))) : to
    if (found.isDirectory()) await this.#folder(from, target, found.mode)
    else if (found.isFile()) await this.#file(from, target, found.mode)
    else throw new Fault("invalid", `${from} is neither a file nor a folder`)
  }

  async #folder(from: string, to: string, mode: number): Promise<void> {
    await this.#files.mkdir(to)
    this.#tally.folders++
    for (const name of await readdir(from)) {
      const [source, target] = [joinHere(from, name), posix.join(to, name)]
      const found = await lstat(source)
      if (found.isDirectory()) await this.#folder(source, target, found.mode)
      else if (found.isFile()) await this.#file(source, target, found.mode)
      else if (found.isSymbolicLink()) await this.#link(await readlink(source), target)
      else this.#tally.skipped.push(`${source} (neither file, folder nor link)`)
    }
    if ((mode & modeBits) !== folderMode) await this.#chmod(to, mode & modeBits)
  }

  async #file(from: string, to: string, mode: number): Promise<void> {
    await this.#files.write(to, this.#tally.count(from, createReadStream(from)), mode & modeBits)
    this.#tally.files++
  }

  async #link(target: string, path: string): Promise<void> {
    if (await this.#files.run(["ln", "-sfn", "--", target, path])) this.#tally.links++
    else this.#tally.skipped.push(`${path} (a link)`)
  }

  async #chmod(path: string, mode: number): Promise<void> {
    if (await this.#files.run(["chmod", mode.toString(8), "--", path])) return
    this.#tally.skipped.push(`${path} (its mode)`)
  }
}
