import { Fault } from "@warren/base/fault.ts"
import type { ArchiveLimits } from "../limits.ts"
import type { ByteSource } from "./byte-source.ts"
import { refused, shown, tooMuch, type EntryKind, type TarEntry } from "./entry.ts"
import { blockBytes, isZero, readHeader, type RawHeader } from "./header.ts"
import { readPax } from "./pax.ts"

const kinds: Readonly<Record<string, EntryKind>> = {
  "0": "file",
  "\0": "file",
  "7": "file",
  "1": "hardlink",
  "2": "symlink",
  "3": "device",
  "4": "device",
  "5": "folder",
  "6": "fifo",
}

/** What extended headers said about the entry that follows. */
interface Announced {
  readonly pax?: ReadonlyMap<string, Buffer>
  readonly name?: string
  readonly target?: string
}

/**
 * Reads an archive strictly: what two readers could understand in two ways is refused. Each entry's bytes are read with `body`
 * before the next entry is asked for; what is left of them is skipped.
 */
export class TarReader {
  readonly #source: ByteSource
  readonly #limits: ArchiveLimits
  #left = 0
  #padding = 0
  #entries = 0
  #last = ""

  constructor(source: ByteSource, limits: ArchiveLimits) {
    this.#source = source
    this.#limits = limits
  }

  get entries(): number {
    return this.#entries
  }

  /** The next entry; undefined at the end. */
  async next(): Promise<TarEntry | undefined> {
    let announced: Announced = {}
    for (;;) {
      await this.#located(() => this.#source.skip(this.#left + this.#padding))
      this.#left = this.#padding = 0
      const header = await this.#located(() => this.#header())
      if (!header) {
        if (Object.keys(announced).length > 0) throw refused(this.#last, "is followed by a header without its entry")
        return undefined
      }
      this.#begin(header.sizeBytes)
      if (!(header.type in extended)) return this.#entry(header, announced)
      announced = { ...announced, ...(await this.#extended(header, announced)) }
    }
  }

  /** The bytes of the entry last read. */
  async *body(): AsyncGenerator<Buffer, void, void> {
    while (this.#left > 0) {
      const chunk = await this.#located(() => this.#source.some(this.#left))
      this.#left -= chunk.length
      yield chunk
    }
  }

  async #header(): Promise<RawHeader | undefined> {
    const block = await this.#source.exactly(blockBytes)
    const header = block && readHeader(block)
    if (header || !block) return header
    const next = await this.#source.exactly(blockBytes)
    // Some readers stop at one block of zeros, some at two: what comes between would be seen by some only.
    if (next && !isZero(next)) throw new Fault("invalid", "the archive goes on after its end")
    return undefined
  }

  /** Damage has no name of its own: it is told by the entry it follows. */
  async #located<T>(work: () => T | PromiseLike<T>): Promise<T> {
    try {
      return await work()
    } catch (failure) {
      if (!(failure instanceof Fault) || failure.subject !== undefined) throw failure
      const where = this.#last === "" ? "at its beginning" : `at or after the entry ${shown(this.#last)}`
      throw new Fault(failure.code, `${failure.message} (${where})`, { cause: failure, hint: failure.hint })
    }
  }

  #begin(sizeBytes: number): void {
    this.#left = sizeBytes
    this.#padding = (blockBytes - (sizeBytes % blockBytes)) % blockBytes
  }

  async #extended(header: RawHeader, before: Announced): Promise<Announced> {
    const key = extended[header.type] ?? "pax"
    if (header.sizeBytes > this.#limits.headerBytesMax) throw tooMuch(header.name, "is a header that is too long")
    if (key !== "global" && key in before) throw refused(header.name, "is a second header for one entry")
    const body = (await this.#located(() => this.#source.exactly(header.sizeBytes))) ?? Buffer.alloc(0)
    this.#left = 0
    const records =
      key === "pax" || key === "global" ? await this.#located(() => readPax(body)) : new Map<string, Buffer>()
    if (key === "pax") return { pax: records }
    if (key === "global") {
      const bad = [...records.keys()].find((name) => entryKeys.has(name) || name.startsWith("GNU.sparse"))
      if (bad !== undefined) throw refused(header.name, `sets ${bad} for everything that follows`)
      return {}
    }
    return { [key]: body.toString("latin1").replace(/\0+$/, "") }
  }

  #entry(header: RawHeader, { pax = new Map(), ...announced }: Announced): TarEntry {
    const paxText = (key: string): string | undefined => pax.get(key)?.toString("latin1")
    const name = paxText("path") ?? announced.name ?? header.name
    this.#last = name
    if (++this.#entries > this.#limits.entriesMax) throw tooMuch(name, `is one more than ${this.#limits.entriesMax}`)
    const kind = kinds[header.type]
    if (!kind) throw refused(name, `is of a type that is not understood (${JSON.stringify(header.type)})`)
    if ([...pax.keys()].some((key) => key.startsWith("GNU.sparse"))) throw refused(name, "is sparse")
    const size = paxText("size")
    if (size !== undefined) this.#begin(whole(name, "size", size))
    if (kind !== "file" && this.#left > 0) throw refused(name, "has bytes where its type has none")
    // Archives from before there was a type for folders.
    const isFolder = kind === "file" && header.type === "\0" && name.endsWith("/")
    return {
      name,
      kind: isFolder ? "folder" : kind,
      mode: header.mode,
      uid: whole(name, "uid", paxText("uid") ?? String(header.uid)),
      gid: whole(name, "gid", paxText("gid") ?? String(header.gid)),
      mtime: seconds(name, paxText("mtime")) ?? header.mtime,
      sizeBytes: this.#left,
      target: paxText("linkpath") ?? announced.target ?? header.target,
      xattrs: this.#xattrs(name, pax),
    }
  }

  #xattrs(name: string, pax: ReadonlyMap<string, Buffer>): ReadonlyMap<string, Buffer> {
    const xattrs = new Map<string, Buffer>()
    let bytes = 0
    for (const [key, value] of pax) {
      if (!key.startsWith(xattrPrefix)) continue
      xattrs.set(key.slice(xattrPrefix.length), Buffer.from(value))
      bytes += key.length + value.length
    }
    if (bytes > this.#limits.xattrBytesMax) throw tooMuch(name, "has too many attributes")
    return xattrs
  }
}

export const xattrPrefix = "SCHILY.xattr."
const extended: Readonly<Record<string, "pax" | "global" | "name" | "target">> = {
  x: "pax",
  g: "global",
  L: "name",
  K: "target",
}
const entryKeys = new Set(["path", "linkpath", "size", "uid", "gid"])

function whole(name: string, what: string, text: string): number {
  const value = /^[0-9]{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(value)) throw refused(name, `has a ${what} that is no number`)
  return value
}

function seconds(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (!/^-?[0-9]{1,12}(?:\.[0-9]{0,12})?$/.test(text)) throw refused(name, "has a time that is no number")
  return Number(text)
}
