import { execFile } from "node:child_process"
import { closeSync, mkdirSync, openSync, readSync, rmdirSync, statSync } from "node:fs"
import { rename, truncate } from "node:fs/promises"
import { promisify } from "node:util"
import { Fault, messageOf } from "@warren/base/fault.ts"

const run = promisify(execFile)
/** Where a btrfs has its superblock, and in that its name and its size. */
const superblock = { at: 65_536, name: "_BHRfS_M", nameAt: 64, sizeAt: 112, bytes: 4_096 } as const

interface Hands {
  /** `more`: further options. Of the volume itself, unless told. */
  mount(more?: string, file?: string, folder?: string): Promise<unknown>
  unmount(folder: string): Promise<void>
  makeNew(file: string): Promise<void>
  /** What the first mount said. */
  readonly why: string
}

interface Remedy {
  /** What was done, for whoever reads it afterwards. */
  readonly words: string
  apply(file: string): Promise<unknown>
  readonly options?: string
}

/** The gentlest first. None of them takes anything away but what the last seconds before the damage had written. */
const remedies: readonly Remedy[] = [
  { words: "its file had become shorter and was made as long as it was; what was in that part is gone", apply: lengthen },
  { words: "an older root of it was used", apply: () => Promise.resolve(), options: ",rescue=usebackuproot" },
  { words: "its superblock was restored from a copy", apply: restoreSuperblock },
  {
    words: "what was written in its last seconds was left out",
    apply: (file) => run("btrfs", ["rescue", "zero-log", file]),
  },
]

/** Mounts a damaged volume, or sets it aside and mounts a new one. Says what was done. Nothing is ever deleted. */
export async function repair(file: string, hands: Hands): Promise<string> {
  for (const { words, apply, options } of remedies) {
    try {
      await apply(file)
      await hands.mount(options)
      return `the volume was damaged and has been repaired: ${words}`
    } catch {
      // Then the next one.
    }
  }
  return await replace(file, hands)
}

/** Only if a new one can be mounted: where none can, it is not the old one that is broken. */
async function replace(file: string, hands: Hands): Promise<string> {
  const fresh = `${file}.new`
  const trial = `${file}.trial`
  // Whoever was here before may have been killed on the way.
  await hands.unmount(trial).catch(() => undefined)
  try {
    await hands.makeNew(fresh)
    mkdirSync(trial, { recursive: true, mode: 0o700 })
    await hands.mount("", fresh, trial)
    await hands.unmount(trial)
    rmdirSync(trial)
  } catch (cause) {
    throw new Fault("unavailable", `${hands.why.trim()}; nor can a new one: ${messageOf(cause).trim()}`, { cause })
  }
  const aside = `${file}.broken-${new Date().toISOString().replaceAll(":", "-")}`
  await rename(file, aside)
  await rename(fresh, file)
  await hands.mount()
  return "the volume was damaged beyond repair: sandboxes, snapshots and images begin anew"
}

/** As long as the superblock says it is. */
async function lengthen(file: string): Promise<void> {
  const bytes = superblockBytes(file)
  if (bytes === undefined || statSync(file).size >= bytes) throw new Fault("invalid", "it is not too short")
  await truncate(file, bytes)
}

/** How large the file system in it is; undefined when there is none. */
export function superblockBytes(file: string): number | undefined {
  const buffer = Buffer.alloc(superblock.bytes)
  const fd = openSync(file, "r")
  try {
    readSync(fd, buffer, 0, buffer.length, superblock.at)
  } finally {
    closeSync(fd)
  }
  const name = buffer.toString("latin1", superblock.nameAt, superblock.nameAt + superblock.name.length)
  return name === superblock.name ? Number(buffer.readBigUInt64LE(superblock.sizeAt)) : undefined
}

/** The program ends with 2 when it has restored one. */
async function restoreSuperblock(file: string): Promise<void> {
  await run("btrfs", ["rescue", "super-recover", "-y", file]).catch((failure: unknown) => {
    if (!(failure instanceof Error && "code" in failure && failure.code === 2)) throw failure
  })
}
