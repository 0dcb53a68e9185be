import { execFile } from "node:child_process"
import { existsSync, readdirSync, readFileSync, statfsSync, statSync } from "node:fs"
import { open, rename, rm, truncate } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { promisify } from "node:util"
import { Fault, messageOf } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import { sizeIn } from "./superblock.ts"
import { repair } from "./volume-repair.ts"

const run = promisify(execFile)
/** Of the disk, never taken: the rest of the machine needs it. */
const kept = { share: 0.05, bytesMin: 256 * 1024 * 1024, bytesMax: 8 * 1024 ** 3 }
/** It grows; what it does not need is not taken. */
const firstBytesMax = 4 * 1024 ** 3
const smallestBytes = 256 * 1024 * 1024
/** Growing by less is not worth it. */
const stepBytesMin = 64 * 1024 * 1024
/** It is made larger when less than this is free, be it in parts of it or in bytes: sandboxes write on between two looks. */
const tight = { share: 0.2, bytes: 2 * 1024 ** 3, shareMax: 0.5 }
/** It is made smaller when no more than this is used of one that has grown. */
const looseShare = 0.25
const lookMs = 500
const looksPerShrink = 120
/** Room that was freed comes back with a commit: every five seconds rather than every thirty. */
const mountOptions = "loop,noatime,nodiscard,commit=5"

interface VolumeFileOptions {
  readonly log: Log
  readonly firstBytes?: number | undefined
}

/**
 * A btrfs in a file of ours: made, mounted, grown, looked at and, if it must be, repaired. Every byte of the file has its place on
 * the disk from the beginning: one that had not would be missing when the disk is full, and the kernel takes a whole file system away
 * from everybody when its own notes cannot be written. That is why it begins small, and grows.
 */
export class VolumeFile implements AsyncDisposable {
  readonly notes: string[] = []
  readonly #file: string
  readonly #folder: string
  readonly #options: VolumeFileOptions
  #resizing: Promise<void> | undefined
  #watch: NodeJS.Timeout | undefined
  #looks = 0
  #restUntil = 0

  constructor(file: string, folder: string, options: VolumeFileOptions) {
    this.#file = file
    this.#folder = folder
    this.#options = options
  }

  get exists(): boolean {
    return existsSync(this.#file)
  }

  async open(): Promise<void> {
    // A runner that was killed has left it mounted.
    if (!isMounted(this.#folder)) await this.#mount()
    await this.#takeRoom()
    // Whoever made it larger, or was about to make it smaller, may have been killed on the way.
    if (statSync(this.#file).size > (sizeIn(this.#file) ?? Number.POSITIVE_INFINITY)) await this.#useAll()
    this.notes.push(...setAside(this.#file), ...(await findings(this.#folder)))
    for (const note of this.notes) this.#options.log("warn", "volume.note", { note })
    // What a sandbox writes asks nobody; nothing here keeps the process alive.
    const failed = (failure: unknown): void => this.#options.log("warn", "volume.look", { message: messageOf(failure) })
    this.#watch = setInterval(() => void this.#look().catch(failed), lookMs).unref()
  }

  /** Grows it when it is nearly full and the disk has room. A failure is told in the log: what is there goes on. */
  growIfNeeded(): Promise<void> {
    const { free, size } = spaceIn(this.#folder)
    const isTight = free < Math.max(size * tight.share, Math.min(tight.bytes, size * tight.shareMax))
    return isTight ? this.#resize("volume.grow", () => this.#grow()) : Promise.resolve()
  }

  /** What others on this disk could use is given back. */
  shrinkIfLoose(): Promise<void> {
    const { free, size } = spaceIn(this.#folder)
    const isLoose = size - free < size * looseShare && size > 2 * this.#firstBytes()
    return isLoose ? this.#resize("volume.shrink", () => this.#shrink()) : Promise.resolve()
  }

  /** Not again at once after it went wrong: what made it fail is still there. */
  async #look(): Promise<void> {
    if (++this.#looks < this.#restUntil) return
    await (this.#looks % looksPerShrink === 0 ? this.shrinkIfLoose() : this.growIfNeeded())
  }

  /** One at a time; whoever asks meanwhile waits for the one that is under way. */
  #resize(event: string, work: () => Promise<void>): Promise<void> {
    this.#resizing ??= this.#trying(event, work).finally(() => (this.#resizing = undefined))
    return this.#resizing
  }

  async #trying(event: string, work: () => Promise<void>): Promise<void> {
    try {
      if (!isMounted(this.#folder)) throw new Fault("unavailable", "somebody has unmounted the volume")
      await work()
    } catch (failure) {
      this.#restUntil = this.#looks + looksPerShrink
      this.#options.log("warn", event, { message: messageOf(failure) })
    }
  }

  /** Lazily: sandboxes that go on have it in namespaces of their own, and the file stays in use until the last has ended. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#watch)
    await this.#resizing
    await run("umount", ["--lazy", this.#folder])
  }

  async #mount(): Promise<void> {
    if (!this.exists) await make(this.#file, this.#firstBytes())
    // `mount` finds a loop device that still has the file, so it is never attached twice.
    const mount = (more = "", file = this.#file, folder = this.#folder): Promise<unknown> =>
      run("mount", ["-t", "btrfs", "-o", mountOptions + more, file, folder])
    try {
      await mount()
    } catch (failure) {
      // Somebody has it mounted: that is no damage, and nothing to be repaired under their feet.
      if (isAttached(this.#file)) throw failure
      const makeNew = (file: string): Promise<void> => make(file, this.#firstBytes())
      this.notes.push(await repair(this.#file, { mount, makeNew, unmount, why: messageOf(failure) }))
    }
  }

  /** A file that was made sparse, or longer by a repair, has parts without a place on the disk. */
  async #takeRoom(): Promise<void> {
    if (!isSparse(this.#file)) return
    // No more than it needs.
    await this.#trying("volume.shrink", () => this.#shrink())
    await fill(this.#file, statSync(this.#file).size).catch((failure: unknown) => {
      const note =
        "the disk has not enough room for all of the volume: should it become full, sandboxes can no longer write"
      this.#options.log("warn", "volume.room", { message: messageOf(failure) })
      this.notes.push(note)
    })
  }

  #firstBytes(): number {
    return Math.min(this.#options.firstBytes ?? firstBytesMax, room(dirname(this.#file), 0))
  }

  /** Twice as large each time: others on this disk have volumes, too. */
  async #grow(): Promise<void> {
    const { size } = statSync(this.#file)
    const bytes = Math.min(size * 2, room(dirname(this.#file), size))
    if (bytes < size + stepBytesMin) return
    await fill(this.#file, bytes).catch(async (failure: unknown) => {
      // Half of it may have been taken.
      await truncate(this.#file, size)
      throw failure
    })
    await this.#useAll()
    this.#options.log("info", "volume.grow", { bytes })
  }

  async #useAll(): Promise<void> {
    await run("losetup", ["--set-capacity", deviceOf(this.#folder)])
    await run("btrfs", ["filesystem", "resize", "max", this.#folder])
  }

  /** The file system first: the file is cut only where the superblock says that nothing is any more. */
  async #shrink(): Promise<void> {
    const { free, size } = spaceIn(this.#folder)
    const bytes = toMegabytes(Math.max(this.#firstBytes(), (size - free) * 2 + tight.bytes * tight.shareMax))
    if (bytes > size - stepBytesMin) return
    await run("btrfs", ["filesystem", "resize", String(bytes), this.#folder])
    if ((sizeIn(this.#file) ?? Number.POSITIVE_INFINITY) > bytes) throw new Fault("internal", "it did not shrink")
    await truncate(this.#file, bytes)
    await run("losetup", ["--set-capacity", deviceOf(this.#folder)])
    this.#options.log("info", "volume.shrink", { bytes })
  }
}

function spaceIn(folder: string): { readonly size: number; readonly free: number } {
  const { blocks, bavail, bsize } = statfsSync(folder)
  return { size: blocks * bsize, free: bavail * bsize }
}

function isSparse(file: string): boolean {
  const { size, blocks } = statSync(file)
  return blocks * 512 < size
}

/** How large a file may be that takes `ownBytes` of the disk already. */
function room(folder: string, ownBytes: number): number {
  const { size, free } = spaceIn(folder)
  const keptBytes = Math.min(Math.max(size * kept.share, kept.bytesMin), kept.bytesMax)
  return toMegabytes(ownBytes + Math.max(0, free - keptBytes))
}

function toMegabytes(bytes: number): number {
  return Math.floor(bytes / 2 ** 20) * 2 ** 20
}

async function make(file: string, bytes: number): Promise<void> {
  if (bytes < smallestBytes) throw new Fault("limit", "there is too little room on the disk")
  const draft = `${file}.tmp`
  await rm(draft, { force: true })
  await (await open(draft, "wx", 0o600)).close()
  try {
    await fill(draft, bytes)
    await run("mkfs.btrfs", ["--quiet", "--metadata", "single", "--nodiscard", draft])
    await rename(draft, file)
  } catch (failure) {
    await rm(draft, { force: true })
    throw failure
  }
}

/** Takes the room on the disk, or, where that cannot be taken ahead, at least the size. */
async function fill(file: string, bytes: number): Promise<void> {
  try {
    await run("fallocate", ["--length", String(bytes), file])
  } catch (failure) {
    if (!/not supported/i.test(messageOf(failure))) throw failure
    await truncate(file, bytes)
  }
}

async function unmount(folder: string): Promise<void> {
  await run("umount", [folder])
}

/** Fields of the mount at a folder, as the kernel lists them. */
function mountOf(folder: string): readonly string[] | undefined {
  const lines = readFileSync("/proc/self/mountinfo", "utf8").split("\n")
  return lines.map((line) => line.split(" ")).findLast((fields) => fields[4] === folder)
}

export function isMounted(folder: string): boolean {
  return mountOf(folder) !== undefined
}

function deviceOf(folder: string): string {
  const fields = mountOf(folder) ?? []
  return fields[fields.indexOf("-") + 2] ?? ""
}

function isAttached(file: string): boolean {
  return readdirSync("/sys/block").some((name) => {
    try {
      return readFileSync(`/sys/block/${name}/loop/backing_file`, "utf8").trim() === file
    } catch {
      // Not a loop device, or one without a file.
      return false
    }
  })
}

/** What the file system itself knows to be wrong. */
async function findings(folder: string): Promise<string[]> {
  const { stdout } = await run("btrfs", ["device", "stats", folder])
  const counts = [...stdout.matchAll(/\.(\w+)\s+([1-9]\d*)$/gm)].map(([, name, count]) => `${name} ${count}`)
  const isReadOnly = mountOf(folder)?.at(-1)?.split(",").includes("ro") === true
  return [
    ...(counts.length > 0 ? [`the volume has had errors: ${counts.join(", ")} (btrfs device stats ${folder})`] : []),
    ...(isReadOnly
      ? ["the kernel has made the volume read-only after an error: end all sandboxes and start again"]
      : []),
  ]
}

/** Volumes that were damaged, beside the one that took their place. They are kept until somebody removes them. */
function setAside(file: string): string[] {
  const names = readdirSync(dirname(file)).filter((name) => name.startsWith(`${basename(file)}.broken-`))
  return names.map((name) => `a damaged volume was set aside, with what was in it: ${join(dirname(file), name)}`)
}
