import { closeSync, openSync, readSync, writeSync } from "node:fs"

/**
 * Where a btrfs says what it is: one block at a fixed place, and copies of it further on. The tools that could read it refuse a file
 * system that has features younger than they are, and ours has (simple quotas): so we read it, and mend it, ourselves.
 */
const places = [2 ** 16, 2 ** 26, 2 ** 38]
const blockBytes = 4_096
const sumBytes = 32
const name = "_BHRfS_M"
/** Offsets of its fields. */
const at = {
  place: 0x30,
  name: 0x40,
  generation: 0x48,
  log: 0x60,
  logUnused: 0x68,
  size: 0x70,
  sumType: 0xc4,
  logLevel: 0xc8,
}
const crc32c = 0

/** How large the file system is; undefined when there is none. */
export function sizeIn(file: string): number | undefined {
  const block = readBlock(file, places[0] ?? 0)
  return block && Number(block.readBigUInt64LE(at.size))
}

/** Puts the newest copy into the first place. False: that one is whole, or there is no copy. */
export function restoreSuperblock(file: string): boolean {
  const [first = 0, ...others] = places
  if (readBlock(file, first)) return false
  const copies = others.map((place) => readBlock(file, place)).filter((block) => block !== undefined)
  const [newest] = copies.toSorted((a, b) =>
    Number(b.readBigUInt64LE(at.generation) - a.readBigUInt64LE(at.generation)),
  )
  if (newest) writeBlock(file, first, newest)
  return newest !== undefined
}

/** Forgets what was written since the last commit. False: there is nothing to forget. */
export function forgetLog(file: string): boolean {
  const [first = 0] = places
  const block = readBlock(file, first)
  if (!block || block.readBigUInt64LE(at.log) === 0n) return false
  block.fill(0, at.log, at.logUnused + 8)
  block.writeUInt8(0, at.logLevel)
  writeBlock(file, first, block)
  return true
}

/** What is in the first place now, and a way to put it back. */
export function keepSuperblock(file: string): () => void {
  const [first = 0] = places
  const kept = Buffer.alloc(blockBytes)
  const read = withFile(file, "r", (fd) => readSync(fd, kept, 0, blockBytes, first))
  return () => void withFile(file, "r+", (fd) => writeSync(fd, kept, 0, read, first))
}

/** Undefined when it is not whole, or has a sum that we cannot make. */
function readBlock(file: string, place: number): Buffer | undefined {
  const block = Buffer.alloc(blockBytes)
  if (withFile(file, "r", (fd) => readSync(fd, block, 0, blockBytes, place)) !== blockBytes) return undefined
  const isOne = block.toString("latin1", at.name, at.name + name.length) === name
  return isOne && block.readUInt16LE(at.sumType) === crc32c && block.readUInt32LE(0) === sum(block) ? block : undefined
}

function writeBlock(file: string, place: number, block: Buffer): void {
  block.writeBigUInt64LE(BigInt(place), at.place)
  block.writeUInt32LE(sum(block), 0)
  withFile(file, "r+", (fd) => writeSync(fd, block, 0, blockBytes, place))
}

function withFile<T>(file: string, flags: "r" | "r+", work: (fd: number) => T): T {
  const fd = openSync(file, flags)
  try {
    return work(fd)
  } finally {
    closeSync(fd)
  }
}

/** The Castagnoli sum of everything behind the field that holds it. */
function sum(block: Buffer): number {
  let state = 0xff_ff_ff_ff
  for (const byte of block.subarray(sumBytes)) {
    state ^= byte
    for (let bit = 0; bit < 8; bit++) state = (state >>> 1) ^ (state & 1 ? 0x82_f6_3b_78 : 0)
  }
  return (state ^ 0xff_ff_ff_ff) >>> 0
}
