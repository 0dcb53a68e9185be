import { Fault } from "@warren/base/fault.ts"

export const blockBytes = 512

/** The fields of a header block. */
export interface RawHeader {
  readonly name: string
  readonly type: string
  readonly mode: number
  readonly uid: number
  readonly gid: number
  readonly mtime: number
  readonly sizeBytes: number
  readonly target: string
}

/** Reads one header block; undefined for a block of zeros, which ends an archive. */
export function readHeader(block: Buffer): RawHeader | undefined {
  if (isZero(block)) return undefined
  const stated = octal(block, 148, 8)
  if (stated !== checksum(block)) throw new Fault("invalid", "a header of the archive has a wrong checksum")
  const magic = block.toString("latin1", 257, 263)
  const isUstar = magic === "ustar\0"
  if (!isUstar && magic !== "ustar " && magic !== "\0\0\0\0\0\0") {
    throw new Fault("invalid", "a header of the archive is of a kind nobody knows")
  }
  const short = text(block, 0, 100)
  const prefix = isUstar ? text(block, 345, 155) : ""
  return {
    name: prefix === "" ? short : `${prefix}/${short}`,
    type: block.toString("latin1", 156, 157),
    mode: number(block, 100, 8) & 0o7777,
    uid: number(block, 108, 8),
    gid: number(block, 116, 8),
    sizeBytes: number(block, 124, 12),
    mtime: number(block, 136, 12, { isSigned: true }),
    target: text(block, 157, 100),
  }
}

export function isZero(block: Buffer): boolean {
  return block.every((byte) => byte === 0)
}

/** The sum of all bytes, with the checksum's own eight read as spaces. */
export function checksum(block: Buffer): number {
  let sum = 8 * 32
  for (let at = 0; at < blockBytes; at++) if (at < 148 || at >= 156) sum += block[at] ?? 0
  return sum
}

function text(block: Buffer, at: number, length: number): string {
  const field = block.toString("latin1", at, at + length)
  const end = field.indexOf("\0")
  return end < 0 ? field : field.slice(0, end)
}

function number(block: Buffer, at: number, length: number, { isSigned = false } = {}): number {
  const first = block[at] ?? 0
  return first & 0x80 ? binary(block.subarray(at, at + length), isSigned) : octal(block, at, length)
}

/** GNU's way for what eight octal digits cannot hold: two's complement, big-endian, with the top bit as the sign that it is so. */
function binary(field: Buffer, isSigned: boolean): number {
  const isNegative = field[0] === 0xff
  let value = isNegative ? -1n : BigInt((field[0] ?? 0) & 0x7f)
  for (const byte of field.subarray(1)) value = (value << 8n) | BigInt(byte)
  const result = Number(value)
  if (!Number.isSafeInteger(result) || (isNegative && !isSigned)) {
    throw new Fault("invalid", "a header of the archive holds a number that is none")
  }
  return result
}

function octal(block: Buffer, at: number, length: number): number {
  const digits = text(block, at, length).trim()
  if (digits === "") return 0
  if (!/^[0-7]+$/.test(digits)) throw new Fault("invalid", "a header of the archive holds a number that is none")
  return Number.parseInt(digits, 8)
}
