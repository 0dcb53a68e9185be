import { blockBytes, checksum } from "./header.ts"
import { writePax } from "./pax.ts"
import { xattrPrefix } from "./reader.ts"
import type { EntryKind, TarEntry } from "./entry.ts"

const types: Readonly<Record<Exclude<EntryKind, "device" | "fifo">, string>> = {
  file: "0",
  hardlink: "1",
  symlink: "2",
  folder: "5",
}

export type WritableEntry = Partial<TarEntry> & {
  readonly name: string
  readonly kind: Exclude<EntryKind, "device" | "fifo">
}

/** The header of an entry, with an extended one before it where the plain one is too small. Its bytes and `padding` follow. */
export function writeHeader(entry: WritableEntry): Buffer {
  const { name, kind, mode = 0o644, uid = 0, gid = 0, mtime = 0, sizeBytes = 0, target = "", xattrs } = entry
  const records: Buffer[] = []
  const say = (key: string, value: string | Uint8Array): void =>
    void records.push(writePax(key, typeof value === "string" ? Buffer.from(value, "latin1") : value))
  if (name.length > 100) say("path", name)
  if (target.length > 100) say("linkpath", target)
  if (sizeBytes > octalMax) say("size", String(sizeBytes))
  if (!Number.isInteger(mtime) || mtime < 0 || mtime > octalMax) say("mtime", String(mtime))
  for (const [key, value] of xattrs ?? []) say(`${xattrPrefix}${key}`, value)
  const size = Math.min(sizeBytes, octalMax)
  const time = Math.min(Math.max(Math.floor(mtime), 0), octalMax)
  const header = block({ name, type: types[kind], mode, uid, gid, size, time, target })
  if (records.length === 0) return header
  const body = Buffer.concat(records)
  const before = block({ name: "pax", type: "x", mode: 0, uid: 0, gid: 0, size: body.length, time: 0, target: "" })
  return Buffer.concat([before, body, padding(body.length), header])
}

export function padding(sizeBytes: number): Buffer {
  return Buffer.alloc((blockBytes - (sizeBytes % blockBytes)) % blockBytes)
}

export const archiveEnd = Buffer.alloc(2 * blockBytes)

const octalMax = 0o77777777777

interface Fields {
  readonly name: string
  readonly type: string
  readonly mode: number
  readonly uid: number
  readonly gid: number
  readonly size: number
  readonly time: number
  readonly target: string
}

/** A ustar block of exactly these fields. */
export function block(fields: Fields): Buffer {
  const bytes = Buffer.alloc(blockBytes)
  const octal = (value: number, at: number, length: number): void =>
    void bytes.write(value.toString(8).padStart(length - 1, "0"), at, "latin1")
  bytes.write(fields.name.slice(0, 100), 0, "latin1")
  octal(fields.mode, 100, 8)
  octal(fields.uid, 108, 8)
  octal(fields.gid, 116, 8)
  octal(fields.size, 124, 12)
  octal(fields.time, 136, 12)
  bytes.write(fields.type, 156, "latin1")
  bytes.write(fields.target.slice(0, 100), 157, "latin1")
  bytes.write("ustar\x0000", 257, "latin1")
  bytes.write(`${checksum(bytes).toString(8).padStart(6, "0")}\0 `, 148, "latin1")
  return bytes
}

/** A whole small archive in memory. */
export function writeTar(entries: readonly (WritableEntry & { readonly content?: Buffer })[]): Buffer {
  const parts = entries.flatMap(({ content = Buffer.alloc(0), ...entry }) => [
    writeHeader({ ...entry, sizeBytes: content.length }),
    content,
    padding(content.length),
  ])
  return Buffer.concat([...parts, archiveEnd])
}
