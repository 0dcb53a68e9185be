import { execFile } from "node:child_process"
import { mkdirSync, readdirSync, renameSync } from "node:fs"
import { mkdir, mkdtemp, rename, rm, stat } from "node:fs/promises"
import { join, relative } from "node:path"
import { promisify } from "node:util"
import { failpoint } from "@warren/base/failpoint.ts"
import type { Log } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { holdLock } from "@warren/base/single-instance.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import { Turns } from "@warren/base/turns.ts"
import type { WrittenLayer } from "@warren/drivers/driver.ts"
import { Catalog, migrations, type LayerRecord } from "./catalog.ts"
import { hexOf, wrongDigest, type Digest } from "./digest.ts"
import { noKeeper, ownKeeper, type Keeper, type Unpacked } from "./keeper/keeper.ts"
import type { UnpackOptions } from "./layer/packed.ts"
import { removeAround, settle } from "./layer/settle.ts"
import type { ArchiveLimits } from "./limits.ts"

const run = promisify(execFile)
/** What a layer that we made is called in its folder. */
const inside = "root"

export interface StoreOptions {
  readonly root: string
  readonly limits: ArchiveLimits
  readonly log: Log
  readonly keeper?: Keeper | undefined
}

/** Keeps layers from being collected, for as long as whoever gave it says. */
export type Pin = (layers: readonly Digest[]) => void

interface AddOptions {
  /** What it must turn out to be. */
  readonly expected?: Digest
  readonly signal?: AbortSignal | undefined
  readonly pin: Pin
}

/**
 * Layers on disk, each once, by the digest of its archive. A layer is made in `drafts` and appears by rename, whole; the catalog
 * knows it after that. On the way out the catalog forgets it first and its folder goes to `drafts`. So whatever moment the machine
 * stops at, what is in `layers` and not in the catalog, and everything in `drafts`, is rubbish.
 */
export class LayerStore implements AsyncDisposable {
  readonly catalog: Catalog
  readonly keeper: Keeper
  readonly #options: StoreOptions
  readonly #scope: Scope
  readonly #turns = new Turns()
  /** What somebody here works with and no image holds yet. */
  readonly #pins = new Map<Digest, number>()

  private constructor(options: StoreOptions, catalog: Catalog, scope: Scope) {
    this.#options = options
    this.catalog = catalog
    this.keeper = options.keeper ?? (process.getuid?.() === 0 ? ownKeeper : noKeeper)
    this.#scope = scope
  }

  static async open(options: StoreOptions): Promise<LayerStore> {
    const { root } = options
    for (const folder of ["", "layers", "layers/sha256", "drafts", "blobs"]) {
      mkdirSync(join(root, folder), { recursive: true, mode: 0o700 })
    }
    await using scope = new Scope()
    scope.use(holdLock(join(root, "lock"), "a store of these images"))
    const database = scope.use(new Database(join(root, "images.db"), { migrations }))
    const store = new LayerStore(options, new Catalog(database), scope.move())
    try {
      await store.#tidy()
      return store
    } catch (failure) {
      await store[Symbol.asyncDispose]()
      throw failure
    }
  }

  get limits(): ArchiveLimits {
    return this.#options.limits
  }

  /** Where a layer that is there is. */
  folder(digest: Digest): string {
    return join(this.#place(digest), this.catalog.layer(digest)?.inside ?? "")
  }

  /** Where a blob is collected, byte by byte, over as many tries as it takes. */
  blobPath(digest: Digest): string {
    return join(this.#options.root, "blobs", hexOf(digest))
  }

  /** Keeps layers and images from being collected until disposed. */
  pin(digests: readonly Digest[]): Disposable {
    for (const digest of digests) this.#pins.set(digest, (this.#pins.get(digest) ?? 0) + 1)
    let isPinned = true
    return {
      [Symbol.dispose]: () => {
        if (!isPinned) return
        isPinned = false
        for (const digest of digests) {
          const left = (this.#pins.get(digest) ?? 0) - 1
          if (left > 0) this.#pins.set(digest, left)
          else this.#pins.delete(digest)
        }
      },
    }
  }

  /** One at a time for one digest: whoever comes second finds it there. */
  turn<T>(digest: Digest, work: () => Promise<T>): Promise<T> {
    return this.#turns.take(digest, work)
  }

  /** Makes a layer of an archive, and pins it before anybody could collect it. */
  add(packed: AsyncIterable<Uint8Array>, options: AddOptions): Promise<LayerRecord> {
    return this.#make((to) => this.keeper.unpack(packed, to), options)
  }

  /** Makes a layer of what a stopped sandbox has written, without copying it where that can be. */
  async take(written: WrittenLayer, { signal, pin }: Omit<AddOptions, "expected">): Promise<LayerRecord> {
    await using draft = await this.draft()
    const clone = join(draft.path, "clone")
    const root = await written.cloneTo(clone)
    if (root === undefined) return await this.#make((to) => this.keeper.repack(written.folder, to), { signal, pin })
    const place = relative(clone, root)
    await removeAround(clone, place.split("/"))
    const { limits } = this.#options
    const record = { ...(await settle(root, { limits, signal })), inside: place }
    return await this.#keep(clone, record, { signal, pin })
  }

  /** A folder that is gone when its owner is done, or when the store is next opened. */
  async draft(): Promise<AsyncDisposable & { readonly path: string }> {
    const path = await mkdtemp(join(this.#options.root, "drafts", "d-"))
    return { path, [Symbol.asyncDispose]: () => this.keeper.remove(path) }
  }

  /** Takes away what nobody needs. Half-collected blobs stay for `blobsMs`, steps of recipes for `stepsMs`, after their last use. */
  async collect({ blobsMs, stepsMs, now }: { blobsMs: number; stepsMs: number; now: number }): Promise<Collected> {
    await using draft = await this.draft()
    const { images, layers } = this.catalog.forget((digest) => this.#pins.has(digest), now - stepsMs)
    // At once, before anybody who misses one of them could have made it again.
    for (const digest of layers) renameSync(this.#place(digest), join(draft.path, hexOf(digest)))
    failpoint("image/forgotten")
    const blobs: string[] = []
    for (const name of readdirSync(join(this.#options.root, "blobs"))) {
      const path = join(this.#options.root, "blobs", name)
      if (this.#pins.has(`sha256:${name}`)) continue
      const stats = await stat(path).catch(() => undefined)
      if (stats && stats.mtimeMs <= now - blobsMs) blobs.push(path)
    }
    for (const path of blobs) await rm(path, { force: true })
    return { images, layers, blobs: blobs.length }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#scope.close()
  }

  #place(digest: Digest): string {
    return join(this.#options.root, "layers/sha256", hexOf(digest))
  }

  /** In a folder of our own: what belongs to somebody else can be moved neither by us nor, perhaps, by anybody. */
  async #make(make: (to: UnpackOptions) => Promise<Unpacked>, options: AddOptions): Promise<LayerRecord> {
    const { expected, signal } = options
    await using draft = await this.draft()
    const folder = join(draft.path, "layer")
    await mkdir(folder, { mode: 0o700 })
    const { limits } = this.#options
    const made = await make({ root: join(folder, inside), scratch: draft.path, limits, signal })
    const { digest, entries, fileBytes: bytes, opaque, skipped } = made
    if (expected !== undefined && digest !== expected) throw wrongDigest("the layer", expected, digest)
    if (skipped.length > 0) this.#options.log("info", "image.skipped", { layer: digest, entries: skipped.join(" ") })
    return await this.#keep(folder, { digest, entries, bytes, opaque, inside }, options)
  }

  /** What a draft has made becomes a layer, unless there is the same already. */
  async #keep(folder: string, record: LayerRecord, { signal, pin }: AddOptions): Promise<LayerRecord> {
    // A layer that the catalog knows must be whole after a power cut, too.
    await run("sync", ["--file-system", folder])
    signal?.throwIfAborted()
    pin([record.digest])
    const known = this.catalog.layer(record.digest)
    if (known) return known
    failpoint("layer/settled")
    renameSync(folder, this.#place(record.digest))
    try {
      failpoint("layer/placed")
      this.catalog.addLayer(record)
    } catch (failure) {
      // What nobody knows would be in the way of whoever brings the same again.
      renameSync(this.#place(record.digest), folder)
      throw failure
    }
    return record
  }

  /** By way of `drafts`: half of a layer must never be found where layers are. */
  async #remove(folder: string): Promise<void> {
    await using draft = await this.draft()
    await rename(folder, join(draft.path, "gone")).catch((failure: NodeJS.ErrnoException) => {
      if (failure.code !== "ENOENT") throw failure
    })
  }

  /** After whatever happened to the process before us. */
  async #tidy(): Promise<void> {
    const { root, log } = this.#options
    const drafts = readdirSync(join(root, "drafts"))
    for (const name of drafts) await this.keeper.remove(join(root, "drafts", name))
    const onDisk = new Set(readdirSync(join(root, "layers/sha256")))
    const known = this.catalog.layers()
    for (const { digest } of known) {
      if (onDisk.delete(hexOf(digest))) continue
      log("error", "image.lost", { layer: digest })
      this.catalog.dropLayer(digest)
    }
    for (const name of onDisk) await this.#remove(join(root, "layers/sha256", name))
    if (drafts.length + onDisk.size > 0) log("info", "image.tidied", { drafts: drafts.length, layers: onDisk.size })
  }
}

export interface Collected {
  readonly images: readonly Digest[]
  readonly layers: readonly Digest[]
  readonly blobs: number
}
