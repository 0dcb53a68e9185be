import { randomBytes } from "node:crypto"
import { closeSync, constants, lstatSync, openSync, readdirSync, readFileSync, readSync } from "node:fs"
import { join } from "node:path"
import { constants as zlib, inflateRawSync } from "node:zlib"

/** Read at once; the end of one piece is looked at again with the next. */
const pieceBytes = 8 * 1024 * 1024
/** Of what is packed, so much is unpacked: a leak is at the beginning of something, not behind gigabytes. */
const unpackedBytesMax = 16 * 1024 * 1024
const packedTriesMax = 64
/** More than a canary takes in any of its forms. */
const overlapBytes = 1024

/** A text that nobody could guess, planted where it may be, and looked for where it may not: as it is, and in every form it could be in. */
export class Canary {
  readonly text: string
  readonly #forms: ReadonlyMap<string, Buffer>

  constructor(text = `cny${randomBytes(15).toString("hex")}`) {
    this.text = text
    this.#forms = formsOf(text)
  }

  /** Where it is and in which form; undefined when it is not. */
  in(bytes: Buffer | string): string | undefined {
    const all = typeof bytes === "string" ? Buffer.from(bytes) : bytes
    return this.#plain(all) ?? this.#packed(all)
  }

  #plain(bytes: Buffer): string | undefined {
    for (const [form, wanted] of this.#forms) if (bytes.includes(wanted)) return form
    return undefined
  }

  /** What looks packed is unpacked. */
  #packed(bytes: Buffer): string | undefined {
    let tries = 0
    for (const [name, magic, headBytes] of packers) {
      for (let at = bytes.indexOf(magic); at >= 0 && tries < packedTriesMax; at = bytes.indexOf(magic, at + 1)) {
        tries++
        const form = this.#unpacked(bytes.subarray(at + headBytes(bytes.subarray(at))))
        if (form !== undefined) return `${form}, in ${name}`
      }
    }
    return undefined
  }

  #unpacked(bytes: Buffer): string | undefined {
    try {
      // Its end may be missing, or something else may follow: what there is is looked at.
      const how = { maxOutputLength: unpackedBytesMax, finishFlush: zlib.Z_SYNC_FLUSH }
      return this.#plain(inflateRawSync(bytes, how))
    } catch {
      // Something else that begins with these bytes.
      return undefined
    }
  }
}

const packers = [
  ["gzip", Buffer.from([0x1f, 0x8b, 0x08]), gzipHeadBytes],
  ["zlib", Buffer.from([0x78, 0x9c]), () => 2],
] as const

/** With the name of a file behind it, where it has one. */
function gzipHeadBytes(bytes: Buffer): number {
  const hasName = ((bytes[3] ?? 0) & 8) !== 0
  return hasName ? bytes.indexOf(0, 10) + 1 : 10
}

function formsOf(text: string): Map<string, Buffer> {
  const bytes = Buffer.from(text)
  const swapped = Buffer.from(text, "utf16le").swap16()
  const forms: [string, Buffer | string][] = [
    ["as it is", text],
    ["URL-encoded", encodeURIComponent(text)],
    ["percent-encoded throughout", bytes.toString("hex").replaceAll(/../g, "%$&")],
    ["JSON-escaped", JSON.stringify(text).slice(1, -1)],
    ["JSON-escaped twice", JSON.stringify(JSON.stringify(text)).slice(3, -3)],
    ["hex", bytes.toString("hex")],
    ["HEX", bytes.toString("hex").toUpperCase()],
    ["UTF-16 LE", Buffer.from(text, "utf16le")],
    ["UTF-16 BE", swapped],
    ["reversed", Array.from(text).toReversed().join("")],
    // What it becomes depends on how many bytes are before it.
    ...[0, 1, 2].flatMap((before): [string, string][] => {
      const core = base64CoreOf(bytes, before)
      return [
        [`base64 (${before} before)`, core],
        [`base64url (${before} before)`, core.replaceAll("+", "-").replaceAll("/", "_")],
      ]
    }),
  ]
  return new Map(forms.map(([name, form]) => [name, Buffer.from(form)]))
}

/** Those of its characters that are made of the text alone. */
function base64CoreOf(bytes: Buffer, before: number): string {
  const whole = Buffer.concat([Buffer.alloc(before), bytes])
    .toString("base64")
    .replaceAll("=", "")
  const head = Math.ceil((before * 8) / 6)
  const tail = (bytes.length + before) % 3 === 0 ? 0 : 1
  return whole.slice(head, whole.length - tail)
}

type Canaries = Readonly<Record<string, Canary>>

/** Files and names below a folder that have any of the canaries in them. Links are not followed; what is no file is not opened. */
export function filesWith(canaries: Canaries, folder: string): string[] {
  const stats = lstatSync(folder, { throwIfNoEntry: false })
  const found = look(canaries, folder, folder)
  if (stats?.isFile()) for (const piece of filePieces(folder)) found.push(...look(canaries, folder, piece))
  if (stats?.isDirectory()) for (const name of namesIn(folder)) found.push(...filesWith(canaries, join(folder, name)))
  return [...new Set(found)]
}

function look(canaries: Canaries, where: string, bytes: Buffer | string): string[] {
  return Object.entries(canaries).flatMap(([name, canary]) => {
    const form = canary.in(bytes)
    return form === undefined ? [] : [`${where}: ${name}, ${form}`]
  })
}

/** Of what is being made and removed while it is looked at, whatever is there. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function openIfAny(path: string): number | undefined {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (failure) {
    if (["ENOENT", "ELOOP"].includes((failure as NodeJS.ErrnoException).code ?? "")) return undefined
    throw failure
  }
}

function* filePieces(path: string): Generator<Buffer> {
  const file = openIfAny(path)
  if (file === undefined) return
  try {
    const piece = Buffer.alloc(pieceBytes)
    let rest = Buffer.alloc(0)
    for (let count = readSync(file, piece); count > 0; count = readSync(file, piece)) {
      const here = Buffer.concat([rest, piece.subarray(0, count)])
      yield here
      rest = here.subarray(-overlapBytes)
    }
  } finally {
    closeSync(file)
  }
}

/** The memory of a process, as far as it can be read; its kernel pages and what was unmapped meanwhile are left out. */
export function memoryWith(canaries: Canaries, pid: number): string[] {
  const found = new Set<string>()
  const file = openSync(`/proc/${pid}/mem`, "r")
  try {
    for (const line of readFileSync(`/proc/${pid}/maps`, "utf8").split("\n")) {
      const [, from = "", to = "", rights = ""] = /^([0-9a-f]+)-([0-9a-f]+) (\S+)/.exec(line) ?? []
      if (!rights.startsWith("rw")) continue
      for (const bytes of piecesOf(file, BigInt(`0x${from}`), BigInt(`0x${to}`)))
        for (const [name, canary] of Object.entries(canaries)) if (bytes.includes(canary.text)) found.add(name)
    }
  } finally {
    closeSync(file)
  }
  return [...found]
}

function* piecesOf(file: number, from: bigint, to: bigint): Generator<Buffer> {
  for (let at = from; at < to; at += BigInt(pieceBytes)) {
    const left = to - at
    const piece = Buffer.alloc(Number(left < BigInt(pieceBytes) ? left : BigInt(pieceBytes)))
    try {
      yield piece.subarray(0, readSync(file, piece, 0, piece.length, at))
    } catch {
      return
    }
  }
}
