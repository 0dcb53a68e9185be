import { execFile } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, statfsSync } from "node:fs"
import { open, rename, rm } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"
import { errnoOf, Fault, messageOf } from "@warren/base/fault.ts"
import type { Launcher } from "./launcher.ts"

/** Where sandboxes write. Each has a folder that is made, measured and taken away as a whole. */
export interface Volume {
  readonly folder: string
  /** Why a folder's size cannot be limited here; undefined when it can. */
  readonly unlimited: string | undefined
  /** Whether a folder can be taken away while it is still written to. */
  readonly canRemoveInUse: boolean
  create(path: string, bytesMax: number): Promise<void>
  usage(path: string): Promise<number>
  remove(path: string): Promise<void>
  /** Absent where it would cost as much as there is to copy. */
  snapshot?(from: string, to: string, bytesMax: number): Promise<void>
}

/** A folder that is on a btrfs, or why it is not. */
export interface Ground extends AsyncDisposable {
  readonly folder: string
  readonly missing: string | undefined
}

const run = promisify(execFile)
const btrfsType = 0x91_23_68_3e
/** Of what is free on the disk when the volume is made: the rest of the machine keeps its part. */
const shareOfFree = 0.8
const smallestBytes = 256 * 1024 * 1024

/**
 * The ground below `root`: the disk itself where it is a btrfs, otherwise a btrfs in a file of ours. That gives real disk
 * limits, snapshots that cost nothing and removal in an instant. To be had before the launcher starts: its mount namespace is
 * a copy of what there is then.
 */
export async function openGround(root: string): Promise<Ground> {
  const folder = join(root, "volume")
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (process.getuid?.() !== 0)
    return { folder, missing: "only root can mount a volume or limit what is written", ...kept }
  const nothing = { folder, missing: undefined, ...kept }
  if (statfsSync(root).type === btrfsType) return nothing
  try {
    if (!isMounted(folder)) await mountFile(join(root, "volume.btrfs"), folder)
  } catch (failure) {
    return { ...nothing, missing: messageOf(failure).trim() }
  }
  // Lazily: sandboxes that go on have it in namespaces of their own, and the file stays in use until the last has ended.
  const unmount = async (): Promise<void> => void (await run("umount", ["--lazy", folder]))
  return { folder, missing: undefined, [Symbol.asyncDispose]: unmount }
}

/** Nothing was mounted, so nothing is taken away. */
const kept = { [Symbol.asyncDispose]: () => Promise.resolve() }

/** Layers with limits on the ground, or plain folders that say why. */
export async function openVolume(ground: Ground, launcher: Launcher): Promise<Volume> {
  const plain = (why: string): Volume => new FolderVolume(ground.folder, launcher, why)
  if (ground.missing !== undefined) return plain(ground.missing)
  try {
    await launcher.openVolume(ground.folder)
    return new BtrfsVolume(ground.folder, launcher)
  } catch (failure) {
    return plain(messageOf(failure))
  }
}

/** Sandboxes as subvolumes. */
class BtrfsVolume implements Volume {
  readonly folder: string
  readonly unlimited = undefined
  readonly canRemoveInUse = true
  readonly #launcher: Launcher

  constructor(folder: string, launcher: Launcher) {
    this.folder = folder
    this.#launcher = launcher
  }

  create(path: string, bytesMax: number): Promise<void> {
    return this.#launcher.createLayer(path, bytesMax)
  }

  usage(path: string): Promise<number> {
    return this.#launcher.layerUsage(path)
  }

  remove(path: string): Promise<void> {
    return this.#launcher.removeLayer(path)
  }

  async snapshot(from: string, to: string, bytesMax: number): Promise<void> {
    await this.#launcher.snapshotLayer(from, to)
    // What was written before stays on the origin's account for as long as the snapshot has it, whatever the origin does
    // with it: it gets that much more, so that its limit means the same as before.
    if (bytesMax > 0) await this.#launcher.limitLayer(from, bytesMax + (await this.usage(from)))
  }
}

class FolderVolume implements Volume {
  readonly folder: string
  readonly unlimited: string
  readonly canRemoveInUse = false
  readonly #launcher: Launcher

  constructor(folder: string, launcher: Launcher, why: string) {
    this.folder = folder
    this.unlimited = why
    this.#launcher = launcher
  }

  create(path: string): Promise<void> {
    try {
      mkdirSync(path, { mode: 0o700 })
      return Promise.resolve()
    } catch (cause) {
      const isTaken = errnoOf(cause) === "EEXIST"
      return Promise.reject(isTaken ? new Fault("conflict", "that folder exists", { cause }) : cause)
    }
  }

  usage(path: string): Promise<number> {
    return this.#launcher.usage(path)
  }

  remove(path: string): Promise<void> {
    return this.#launcher.remove(path)
  }
}

/** A runner that was killed has left it mounted. */
function isMounted(folder: string): boolean {
  const lines = readFileSync("/proc/self/mountinfo", "utf8").split("\n")
  return lines.some((line) => line.split(" ")[4] === folder)
}

async function mountFile(file: string, folder: string): Promise<void> {
  if (!existsSync(file)) await makeFile(file, folder)
  // `mount` finds a loop device that still has the file, so it is never attached twice. Room that was freed comes back with a
  // commit: every five seconds rather than every thirty.
  await run("mount", ["-t", "btrfs", "-o", "loop,noatime,discard=async,commit=5", file, folder])
}

async function makeFile(file: string, folder: string): Promise<void> {
  const { bavail, bsize } = statfsSync(folder)
  const bytes = Math.floor((bavail * bsize * shareOfFree) / 2 ** 20) * 2 ** 20
  if (bytes < smallestBytes) throw new Fault("limit", "there is too little room on the disk")
  const draft = `${file}.tmp`
  await rm(draft, { force: true })
  const handle = await open(draft, "wx", 0o600)
  // Sparse: it takes room on the disk as it is filled, and gives it back (`discard`).
  await handle.truncate(bytes)
  await handle.close()
  await run("mkfs.btrfs", ["--quiet", "--metadata", "single", "--nodiscard", draft])
  await rename(draft, file)
}
