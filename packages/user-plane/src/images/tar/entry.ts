import { Fault } from "@warren/base/fault.ts"

export type EntryKind = "file" | "folder" | "symlink" | "hardlink" | "device" | "fifo"

/**
 * One entry as the archive says it, not yet believed. Names are bytes, kept as latin1 text: one character for each byte, so that
 * what is not UTF-8 survives, and can be cut and compared like text.
 */
export interface TarEntry {
  readonly name: string
  readonly kind: EntryKind
  readonly mode: number
  readonly uid: number
  readonly gid: number
  readonly mtime: number
  readonly sizeBytes: number
  /** Of links. */
  readonly target: string
  readonly xattrs: ReadonlyMap<string, Buffer>
}

/** A name for people: what it means, with everything that could upset a terminal escaped. */
export function shown(name: string): string {
  const text = Buffer.from(name, "latin1").toString("utf8")
  return JSON.stringify(text.length > shownMax ? `${text.slice(0, shownMax)}…` : text)
}

const shownMax = 200

/** The refusal of one entry, which it names. */
export function refused(name: string, why: string, cause?: unknown): Fault {
  return new Fault("invalid", `the entry ${shown(name)} ${why}`, { subject: `entry:${shown(name)}`, cause })
}

/** Past a limit: the entry at which it happened. */
export function tooMuch(name: string, why: string): Fault {
  return new Fault("limit", `the entry ${shown(name)} ${why}`, { subject: `entry:${shown(name)}` })
}
