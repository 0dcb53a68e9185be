import { systemClock, type Clock } from "@warren/base/clock.ts"
import { failpoint } from "@warren/base/failpoint.ts"
import { Fault } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import { timed } from "@warren/base/log.ts"
import { hostImage } from "@warren/drivers/oci/host-image.ts"
import type { Driver, Sandbox } from "@warren/drivers/driver.ts"
import type { Image, SandboxId, SandboxSpec } from "@warren/drivers/sandbox-spec.ts"
import { join } from "node:path"
import type { ImageRecord } from "./catalog.ts"
import { isDigest, type Digest } from "./digest.ts"
import { baseOf, checkHeight, lender, withLayers } from "./commit.ts"
import { formatOf, opened, type ArchiveFormat } from "./import/archive.ts"
import { describe, importDocker, importOci, importRootfs, type Imported } from "./import/sources.ts"
import type { Keeper } from "./keeper/keeper.ts"
import type { ImageView } from "./layer/merged.ts"
import { archiveLimits, type ArchiveLimits } from "./limits.ts"
import { ImageConfig, readJson } from "./manifest.ts"
import { nameOf, readReference } from "./reference.ts"
import { pull, type PullOptions } from "./registry/pull.ts"
import { LayerStore, type Collected, type Pin } from "./store.ts"
import { warrenLayer } from "./warren-layer.ts"

export interface ImagesOptions {
  readonly root: string
  readonly log: Log
  readonly limits?: Partial<ArchiveLimits>
  readonly clock?: Clock
  /** Who has the files of layers in hand; we ourselves unless said. */
  readonly keeper?: Keeper | undefined
}

/** What people see of an image. */
export interface ImageSummary {
  /** The digest of its manifest; `host` for the machine itself. */
  readonly id: Digest | "host"
  readonly names: readonly string[]
  readonly madeAt: number
  /** Of the files in its layers, shared ones included. */
  readonly bytes: number
  readonly isBuiltIn: boolean
}

export interface ImageDetails extends ImageSummary {
  /** The top one first. */
  readonly layers: readonly { readonly digest: Digest; readonly bytes: number; readonly entries: number }[]
  readonly env: readonly string[]
  readonly workdir: string
  readonly user: string
  readonly command: readonly string[]
  readonly platform: string
  readonly usedBy: readonly string[]
}

export interface ImportOptions {
  readonly name?: string | undefined
  /** Found out by looking, unless said. */
  readonly format?: ArchiveFormat | undefined
  readonly platform?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** After this long half-collected blobs and unused steps of recipes go. */
const idleMs = { blobsMs: 24 * 3600_000, stepsMs: 30 * 24 * 3600_000 }
const hostName = "host"

/** The images of one user: brought, kept, given to sandboxes, and taken away when nobody needs them. */
export class Images implements AsyncDisposable {
  readonly store: LayerStore
  readonly #options: ImagesOptions
  #host: Promise<Image> | undefined
  /** Of this process: those are not to be swept. */
  readonly #workers = new Set<SandboxId>()

  private constructor(store: LayerStore, options: ImagesOptions) {
    this.store = store
    this.#options = options
  }

  static async open(options: ImagesOptions): Promise<Images> {
    const limits = { ...archiveLimits, ...options.limits }
    const { root, log, keeper } = options
    return new Images(await LayerStore.open({ root, limits, log, keeper }), options)
  }

  /** Brings an image from a registry and gives it the name it was asked for by. */
  pull(name: string, options: PullOptions = {}): Promise<Digest> {
    return timed(this.#options.log, "image.pull", { image: name }, async () => {
      using pins = new Pins(this.store)
      const pulled = await pull(this.store, name, { clock: this.#clock, ...options }, (layers) => pins.add(layers))
      return await this.#complete({ ...pulled, names: [] }, [nameOf(pulled.reference)], pins, options.signal)
    })
  }

  /** Takes images from a file or folder: a plain tree, an OCI layout, or what `docker save` writes. */
  import(path: string, { name, platform, signal, ...options }: ImportOptions = {}): Promise<Digest[]> {
    return timed(this.#options.log, "image.import", { image: name }, async () => {
      const format = options.format ?? (await formatOf(path, this.store.limits))
      using pins = new Pins(this.store)
      const context = { store: this.store, platform, signal, pin: (layers: readonly Digest[]) => pins.add(layers) }
      if (format === "rootfs") {
        if (name === undefined) throw new Fault("invalid", "a plain tree has no name of its own: give it one")
        return [await this.#complete(await importRootfs(path, context), namesFor(name, []), pins, signal)]
      }
      await using source = await opened(this.store, path, signal)
      const found =
        format === "oci" ? [await importOci(source.folder, context)] : await importDocker(source.folder, context)
      if (name !== undefined && found.length > 1) throw new Fault("invalid", `one name for ${found.length} images`)
      const ids: Digest[] = []
      for (const image of found) ids.push(await this.#complete(image, namesFor(name, image.names), pins, signal))
      return ids
    })
  }

  /** An image of layers that are in the store already, the bottom one first. For what builds images. */
  async add(image: Omit<Imported, "names">, names: readonly string[], signal?: AbortSignal): Promise<Digest> {
    using pins = new Pins(this.store)
    pins.add(image.layers)
    return await this.#complete({ ...image, names: [] }, names.map(whole), pins, signal)
  }

  /** What an image is made of, without what Warren puts on top: layers, the bottom one first. For what builds images. */
  content(name: string): { readonly layers: readonly Digest[]; readonly config: ImageConfig["config"] } {
    const { config, rootfs } = readJson("the config of the image", ImageConfig, this.#find(name).config)
    return { layers: rootfs.diff_ids, config }
  }

  /** Makes an image of a stopped sandbox, which stays as it is. What the image it stands on says of itself, the new one says, too. */
  commit(driver: Driver, sandbox: SandboxId, name: string, signal?: AbortSignal): Promise<Digest> {
    return timed(this.#options.log, "image.commit", { image: name, sandbox }, async () => {
      const names = [whole(name)]
      return await lender(driver).lendLayer(sandbox, async (written) => {
        using pins = new Pins(this.store)
        const pin: Pin = (layers) => pins.add(layers)
        const base = baseOf(this.store, written.image)
        pin(base.layers)
        const { digest } = await this.store.take(written, { signal, pin })
        const layers = [...base.layers, digest]
        checkHeight(layers)
        const made = describe(withLayers(base.config, layers), layers)
        return await this.#complete({ ...made, names: [] }, names, pins, signal)
      })
    })
  }

  /**
   * A sandbox to work in while an image is made: gone when `work` is done, or, should this process be killed before that, with
   * the next `sweep`.
   */
  async withWorker<T>(
    driver: Driver,
    spec: SandboxSpec,
    signal: AbortSignal,
    work: (sandbox: Sandbox) => Promise<T>,
  ): Promise<T> {
    this.#workers.add(spec.id)
    this.store.catalog.addWorker(spec.id)
    try {
      await driver.create(spec, signal)
      return await work(await driver.start(spec.id, signal))
    } finally {
      await this.#removeWorker(driver, spec.id)
    }
  }

  /** Takes away sandboxes in which an earlier process was making an image. */
  async sweep(driver: Driver): Promise<void> {
    for (const id of this.store.catalog.workers()) {
      if (!this.#workers.has(id)) await this.#removeWorker(driver, id)
    }
  }

  /** Layers (the bottom one first) as something a sandbox starts from. What it is made of is pinned with `pin`. */
  async stack(layers: readonly Digest[], pin: Pin, signal?: AbortSignal): Promise<Image> {
    const all = await this.#topped(layers.toReversed(), pin, signal)
    return { layers: all.map((digest) => this.store.folder(digest)) }
  }

  /** Layers (the bottom one first) as one tree, to look at. */
  view(layers: readonly Digest[]): ImageView {
    return this.store.keeper.view(
      layers.toReversed().map((digest) => ({
        folder: this.store.folder(digest),
        opaque: this.store.catalog.layer(digest)?.opaque ?? [],
      })),
    )
  }

  tag(from: string, to: string): void {
    const name = whole(to)
    const image = this.#find(from)
    if (readReference(to).digest !== undefined) throw new Fault("invalid", "a name cannot be a digest")
    this.store.catalog.name(name, image.id)
  }

  list(): ImageSummary[] {
    const host: ImageSummary = { id: hostName, names: [hostName], madeAt: 0, bytes: 0, isBuiltIn: true }
    return [host, ...this.store.catalog.images().map((image) => this.#summary(image))]
  }

  inspect(name: string): ImageDetails {
    const image = this.#find(name)
    const { config, os, architecture } = readJson("the config of the image", ImageConfig, image.config)
    return {
      ...this.#summary(image),
      layers: image.layers.map((digest) => {
        const { bytes = 0, entries = 0 } = this.store.catalog.layer(digest) ?? {}
        return { digest, bytes, entries }
      }),
      env: config?.Env ?? [],
      workdir: config?.WorkingDir ?? "",
      user: config?.User ?? "",
      command: [...(config?.Entrypoint ?? []), ...(config?.Cmd ?? [])],
      platform: `${os}/${architecture}`,
      usedBy: this.store.catalog.holders(image.id),
    }
  }

  /** The one thing a name stands for now; the name may stand for another later. */
  resolve(name: string): Digest | "host" {
    return name === hostName ? hostName : this.#find(name).id
  }

  /** For a sandbox, which it belongs to until `release`. */
  async use(name: string, holder: string): Promise<Image> {
    // Once for all: two who make it at the same time would be in each other's way.
    if (name === hostName) return (this.#host ??= hostImage(join(this.#options.root, "host")))
    const image = this.#find(name)
    this.store.catalog.hold(image.id, holder)
    return this.#imageOf(image)
  }

  /** The holder is gone. */
  release(holder: string): void {
    this.store.catalog.release(holder)
  }

  /** After a crash: whoever is not among these is gone, and lets go of what they held. Says who that was. */
  releaseOthers(holders: Iterable<string>): string[] {
    return this.store.catalog.releaseOthers(new Set(holders))
  }

  /** Takes a name away, or an image with all its names. Its layers go with `gc`, when nobody uses it any more. */
  delete(name: string): void {
    if (name === hostName) throw new Fault("forbidden", "the image of the machine itself cannot be deleted")
    const image = this.#find(name)
    const names = isDigest(name) ? this.store.catalog.names(image.id) : [whole(name)]
    const holders = this.store.catalog.holders(image.id)
    const isLast = this.store.catalog.names(image.id).every((one) => names.includes(one))
    if (isLast && holders.length > 0) {
      throw new Fault("conflict", `the image is used by ${holders.slice(0, 5).join(", ")}`, {
        subject: `image:${image.id}`,
      })
    }
    failpoint("image/unnaming")
    for (const one of names) this.store.catalog.unname(one)
  }

  gc(idle: Partial<typeof idleMs> = {}): Promise<Collected> {
    return this.store.collect({ ...idleMs, ...idle, now: this.#clock.now() })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.store[Symbol.asyncDispose]()
  }

  async #removeWorker(driver: Driver, id: SandboxId): Promise<void> {
    await driver.destroy(id)
    this.store.catalog.removeWorker(id)
    this.#workers.delete(id)
  }

  get #clock(): Clock {
    return this.#options.clock ?? systemClock
  }

  /** Looks at the tree as a whole, puts our layer on top, and only then lets anybody see it. */
  async #complete(
    image: Imported,
    names: readonly string[],
    pins: Pins,
    signal: AbortSignal | undefined,
  ): Promise<Digest> {
    const { id, manifest, config } = image
    if (!this.store.catalog.image(id)) {
      const layers = await this.#topped(image.layers.toReversed(), (made) => pins.add(made), signal)
      failpoint("image/complete")
      this.store.catalog.addImage({ id, manifest, config, layers, madeAt: this.#clock.now() }, names)
    } else for (const name of names) this.store.catalog.name(name, id)
    failpoint("image/named")
    return id
  }

  /** Layers, the top one first, with ours above them where they need it. */
  async #topped(layers: readonly Digest[], pin: Pin, signal: AbortSignal | undefined): Promise<Digest[]> {
    await using view = this.view(layers.toReversed())
    const ours = await warrenLayer(view)
    if (!ours) return [...layers]
    const { digest } = await this.store.add(once(ours), { signal, pin })
    return [digest, ...layers]
  }

  #find(name: string): ImageRecord {
    const id = isDigest(name) ? name : this.store.catalog.named(whole(name))
    const image = id && this.store.catalog.image(id)
    if (!image) throw new Fault("not_found", `there is no image ${JSON.stringify(name)}`, { hint: "pull or import it" })
    return image
  }

  #imageOf({ layers }: ImageRecord): Image {
    return { layers: layers.map((digest) => this.store.folder(digest)) }
  }

  #summary({ id, layers, madeAt }: ImageRecord): ImageSummary {
    const bytes = layers.reduce((sum, digest) => sum + (this.store.catalog.layer(digest)?.bytes ?? 0), 0)
    return { id, names: this.store.catalog.names(id), madeAt, bytes, isBuiltIn: false }
  }
}

/** Layers of an image that is not in the catalog yet. */
class Pins implements Disposable {
  readonly #store: LayerStore
  readonly #pins: Disposable[] = []

  constructor(store: LayerStore) {
    this.#store = store
  }

  add(digests: readonly Digest[]): void {
    this.#pins.push(this.#store.pin(digests))
  }

  [Symbol.dispose](): void {
    for (const pin of this.#pins) pin[Symbol.dispose]()
  }
}

function whole(name: string): string {
  if (name === hostName) throw new Fault("invalid", "the name host is the machine's own")
  return nameOf(readReference(name))
}

function namesFor(asked: string | undefined, own: readonly string[]): string[] {
  const names = asked === undefined ? own : [asked]
  if (names.length === 0) throw new Fault("invalid", "the archive says no name for the image: give it one")
  return names.map(whole)
}

async function* once(bytes: Buffer): AsyncGenerator<Buffer, void, void> {
  yield await Promise.resolve(bytes)
}
