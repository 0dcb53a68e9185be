import { createWriteStream } from "node:fs"
import { chmod, lstat, mkdir, rename, rm, symlink } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { randomBytes } from "node:crypto"
import { pipeline } from "node:stream/promises"
import { Fault } from "@warren/base/fault.ts"
import type { Entry, InsideFiles } from "./inside.ts"
import type { Tally } from "./tally.ts"

/** Permissions that are carried over. Nothing from inside becomes setuid here. */
const modeBits = 0o777

/**
 * Brings a file or a folder out. What comes from inside is not trusted: no name leads out of the target, links are made last
 * and never followed, and devices, sockets and the like stay where they are.
 */
export class Download {
  readonly #files: InsideFiles
  readonly #tally: Tally
  readonly #links: { readonly path: string; readonly target: string }[] = []
  readonly #modes: { readonly path: string; readonly mode: number }[] = []

  constructor(files: InsideFiles, tally: Tally) {
    this.#files = files
    this.#tally = tally
  }

  async run(from: string, to: string): Promise<void> {
    const entry = await this.#files.stat(from)
    const existing = await lstat(to).catch(() => undefined)
    const isInto = existing?.isDirectory() || to.endsWith("/")
    const target = isInto && basename(from) !== "" ? join(to, basename(from)) : to
    if (entry.type === "file") await this.#file(from, target, entry)
    else if (entry.type === "dir") await this.#folder(from, target, entry)
    else throw new Fault("invalid", `${from} is a ${entry.type}: only files and folders can be copied`)
    for (const { path, target: goal } of this.#links) await this.#link(path, goal)
    // Last, because a folder that may not be written could not have been filled.
    for (const { path, mode } of this.#modes.toReversed()) await chmod(path, mode)
  }

  async #folder(from: string, to: string, { mode }: Entry): Promise<void> {
    await makeFolder(to)
    this.#modes.push({ path: to, mode: mode & modeBits })
    this.#tally.folders++
    for (const entry of await this.#files.list(from)) {
      const [source, target] = [join(from, entry.name), join(to, safeName(entry.name))]
      if (entry.type === "dir") await this.#folder(source, target, entry)
      else if (entry.type === "file") await this.#file(source, target, entry)
      else if (entry.type === "symlink") this.#links.push({ path: target, target: entry.target ?? "" })
      else this.#tally.skipped.push(`${source} (${entry.type})`)
    }
  }

  /** Nothing of it is seen until all of it is there. */
  async #file(from: string, to: string, { mode }: Entry): Promise<void> {
    const found = await lstat(to).catch(() => undefined)
    if (found?.isDirectory()) throw new Fault("conflict", `${to} is a folder here and a file inside`)
    const draft = join(dirname(to), `.${basename(to)}.${randomBytes(6).toString("hex")}.tmp`)
    try {
      const output = createWriteStream(draft, { flags: "wx", mode: 0o600 })
      await pipeline(copied(this.#tally.count(from, this.#files.read(from))), output)
      await chmod(draft, mode & modeBits)
      await rename(draft, to)
    } catch (thrown) {
      await rm(draft, { force: true })
      throw thrown
    }
    this.#tally.files++
  }

  async #link(path: string, target: string): Promise<void> {
    const found = await lstat(path).catch(() => undefined)
    if (found?.isDirectory()) throw new Fault("conflict", `${path} is a folder here and a link inside`)
    if (found) await rm(path)
    await symlink(target, path)
    this.#tally.links++
  }
}

/** Bytes are lent until the next are asked for, and a file may still be writing them then. */
async function* copied(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const piece of source) yield Buffer.from(piece)
}

function safeName(name: string): string {
  if (name === "" || name === "." || name === ".." || name.includes("/") || name.includes("\0")) {
    throw new Fault("forbidden", `the name ${JSON.stringify(name)} would lead somewhere else`)
  }
  return name
}

/** A folder that is there already is filled; a link in its place is not followed, wherever it came from. */
async function makeFolder(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined)
  if (!found) await mkdir(path, { mode: 0o700 })
  else if (!found.isDirectory()) throw new Fault("conflict", `${path} is not a folder here`)
}
