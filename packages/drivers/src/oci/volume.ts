import { constants, copyFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { rename } from "node:fs/promises"
import { join } from "node:path"
import { errnoOf, Fault, messageOf } from "@warren/base/fault.ts"
import { Turns } from "@warren/base/turns.ts"
import type { Ground } from "./ground.ts"
import type { Launcher } from "./launcher.ts"

/** Where sandboxes write. Each has a folder that is made, measured and taken away as a whole. */
export interface Volume {
  readonly folder: string
  /** Why a folder's size cannot be limited here; undefined when it can. */
  readonly unlimited: string | undefined
  /** Why a snapshot takes longer the more there is in it, and who writes must wait; undefined when it costs nothing. */
  readonly copies: string | undefined
  /** Whether a folder can be taken away while it is still written to. */
  readonly canRemoveInUse: boolean
  /** What is wrong with it, in plain words. */
  readonly notes: readonly string[]
  create(path: string, bytesMax: number): Promise<void>
  usage(path: string): Promise<number>
  remove(path: string): Promise<void>
  /** Everything in `from` as it is at one moment, never to change: whole, or not there. `bytesMax`: what `from` may hold, and still may. */
  snapshot(from: string, to: string, bytesMax: number): Promise<void>
  /** A folder that begins with what a snapshot holds. */
  restore(from: string, to: string, as: Restored): Promise<void>
  /** A snapshot for an owner who changes it. Absent where it would cost as much as there is to copy. */
  clone?(from: string, to: string, bytesMax: number): Promise<void>
}

interface Restored {
  /** Of what it writes itself. */
  readonly bytesMax: number
  /** Whose files they were and whose they become; undefined where owners on disk are those inside. */
  readonly owned: Owned | undefined
}

/** The first id of either range, as the launcher counts. */
export interface Owned {
  readonly base: number
  readonly toBase: number
}

/** Layers with limits on the ground, or plain folders that say why. */
export async function openVolume(ground: Ground, launcher: Launcher): Promise<Volume> {
  const plain = (why: string): Volume => new FolderVolume(ground, launcher, why)
  if (ground.missing !== undefined) return plain(ground.missing)
  try {
    const { quota } = await launcher.openVolume(ground.folder)
    return new BtrfsVolume(ground, launcher, quota === "simple")
  } catch (failure) {
    return plain(messageOf(failure))
  }
}

/** Sandboxes as subvolumes. */
class BtrfsVolume implements Volume {
  readonly folder: string
  readonly unlimited = undefined
  readonly copies = undefined
  readonly canRemoveInUse = true
  readonly notes: readonly string[]
  readonly #ground: Ground
  readonly #launcher: Launcher
  /** Bytes count for who wrote them, for as long as anybody has them; otherwise for everybody who has them. */
  readonly #chargesWriter: boolean

  constructor(ground: Ground, launcher: Launcher, chargesWriter: boolean) {
    this.folder = ground.folder
    this.notes = ground.notes
    this.#ground = ground
    this.#launcher = launcher
    this.#chargesWriter = chargesWriter
  }

  async create(path: string, bytesMax: number): Promise<void> {
    await this.#ground.makeRoom()
    await this.#launcher.createLayer(path, bytesMax)
  }

  usage(path: string): Promise<number> {
    return this.#launcher.layerUsage(path)
  }

  remove(path: string): Promise<void> {
    return this.#launcher.removeLayer(path)
  }

  async snapshot(from: string, to: string, bytesMax: number): Promise<void> {
    await this.#ground.makeRoom()
    await this.#launcher.snapshotLayer(from, to)
    await this.#allowMore(from, bytesMax)
  }

  async restore(from: string, to: string, { bytesMax }: Restored): Promise<void> {
    await this.#ground.makeRoom()
    if (this.#chargesWriter) return this.#launcher.cloneLayer(from, to, bytesMax)
    await this.#launcher.cloneLayer(from, to)
    await this.#limitMore(to, bytesMax)
  }

  async clone(from: string, to: string, bytesMax: number): Promise<void> {
    await this.#launcher.cloneLayer(from, to)
    await this.#allowMore(from, bytesMax)
  }

  /**
   * What was written before stays on the origin's account for as long as the snapshot has it, whatever the origin does with it: it
   * gets that much more, so that it can write as much as before.
   */
  async #allowMore(from: string, bytesMax: number): Promise<void> {
    if (this.#chargesWriter) await this.#limitMore(from, bytesMax)
  }

  async #limitMore(path: string, bytesMax: number): Promise<void> {
    if (bytesMax > 0) await this.#launcher.limitLayer(path, bytesMax + (await this.usage(path)))
  }
}

/** Sandboxes as plain folders, on any file system. */
class FolderVolume implements Volume {
  readonly folder: string
  readonly unlimited: string
  readonly copies: string
  readonly canRemoveInUse = false
  readonly notes: readonly string[]
  readonly #ground: Ground
  readonly #launcher: Launcher
  /** A snapshot is not taken away while somebody copies it. */
  readonly #turns = new Turns()

  constructor(ground: Ground, launcher: Launcher, why: string) {
    this.folder = ground.folder
    this.notes = ground.notes
    this.unlimited = why
    this.copies = `${canShare(ground.folder) ? "every file is cloned" : "everything is copied"}: ${why}`
    this.#ground = ground
    this.#launcher = launcher
  }

  async create(path: string): Promise<void> {
    await this.#ground.makeRoom()
    try {
      mkdirSync(path, { mode: 0o700 })
    } catch (cause) {
      throw errnoOf(cause) === "EEXIST" ? new Fault("conflict", "that folder exists", { cause }) : cause
    }
  }

  usage(path: string): Promise<number> {
    return this.#launcher.usage(path)
  }

  remove(path: string): Promise<void> {
    return this.#turns.take(path, () => this.#launcher.remove(path))
  }

  /** Under another name until it is whole. */
  async snapshot(from: string, to: string): Promise<void> {
    await this.#ground.makeRoom()
    const draft = `${to}.part`
    try {
      await this.#launcher.copyTree(from, draft)
      await rename(draft, to)
    } catch (failure) {
      await this.#launcher.remove(draft)
      throw failure
    }
  }

  async restore(from: string, to: string, { owned }: Restored): Promise<void> {
    await this.#ground.makeRoom()
    await this.#turns.take(from, () => this.#launcher.copyTree(from, to, owned))
  }
}

/** Whether two files can have the same bytes here. */
function canShare(folder: string): boolean {
  const [one, other] = [join(folder, ".share-1"), join(folder, ".share-2")]
  try {
    writeFileSync(one, "shared")
    copyFileSync(one, other, constants.COPYFILE_FICLONE_FORCE)
    return true
  } catch {
    return false
  } finally {
    for (const path of [one, other]) rmSync(path, { force: true })
  }
}
