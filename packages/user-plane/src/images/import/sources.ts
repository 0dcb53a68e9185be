import { createHash } from "node:crypto"
import { z } from "zod"
import { Fault } from "@warren/base/fault.ts"
import { checkDigest, digestBytes, finish, hexOf, wrongDigest, type Digest } from "../digest.ts"
import { configBytesMax, layersMax, manifestBytesMax } from "../limits.ts"
import {
  choose,
  ImageConfig,
  Index,
  isIndex,
  layersOf,
  Manifest,
  mediaTypes,
  platformOf,
  readJson,
  type Descriptor,
} from "../manifest.ts"
import type { LayerStore, Pin } from "../store.ts"
import { readArchive } from "./archive.ts"
import { openBelow, readBelow } from "./below.ts"

/** An image whose layers are in the store; not yet in the catalog. */
export interface Imported {
  readonly id: Digest
  readonly manifest: string
  readonly config: string
  /** The bottom one first. */
  readonly layers: readonly Digest[]
  /** What the archive calls it. */
  readonly names: readonly string[]
}

export interface ImportContext {
  readonly store: LayerStore
  readonly platform: string | undefined
  readonly signal: AbortSignal | undefined
  readonly pin: Pin
}

/** A plain tree as an image of one layer. */
export async function importRootfs(path: string, { store, platform, signal, pin }: ImportContext): Promise<Imported> {
  const { digest } = await store.add(readArchive(path), { signal, pin })
  const { os, architecture } = platformOf(platform)
  const config = JSON.stringify({ os, architecture, config: {}, rootfs: { type: "layers", diff_ids: [digest] } })
  return { ...describe(config, [digest]), names: [] }
}

/** Config and manifest for layers that never had one. */
export function describe(config: string, layers: readonly Digest[]): Omit<Imported, "names"> {
  const size = Buffer.byteLength(config)
  const manifest = JSON.stringify({
    schemaVersion: 2,
    mediaType: mediaTypes.ociManifest,
    config: { mediaType: mediaTypes.ociConfig, digest: digestBytes(config), size },
    layers: layers.map((digest) => ({ mediaType: mediaTypes.ociLayer, digest, size: 0 })),
  })
  return { id: digestBytes(manifest), manifest, config, layers }
}

export async function importOci(folder: string, context: ImportContext): Promise<Imported> {
  const text = async (descriptor: Descriptor, bytesMax: number, what: string): Promise<string> => {
    const bytes = await readBelow(folder, blobAt(descriptor.digest), bytesMax)
    checkDigest(what, descriptor.digest, bytes)
    return bytes.toString()
  }
  const top = readJson("index.json", Index, (await readBelow(folder, "index.json", manifestBytesMax)).toString())
  const wanted = platformOf(context.platform)
  const first = top.manifests.length === 1 ? top.manifests[0] : choose(top, wanted)
  if (!first) throw new Fault("invalid", "the archive has no image in it")
  // Often only a tag, which names nothing by itself.
  const names = [first.annotations?.[refName] ?? ""].filter((name) => /[:/]/.test(name))
  let chosen: Descriptor = first
  let manifestText = await text(chosen, manifestBytesMax, "the manifest")
  if (isIndex(chosen.mediaType, manifestText)) {
    chosen = choose(readJson("the index", Index, manifestText), wanted)
    manifestText = await text(chosen, manifestBytesMax, "the manifest")
  }
  const manifest = readJson("the manifest", Manifest, manifestText)
  const config = await text(manifest.config, configBytesMax, "the config of the image")
  const layers = layersOf(manifest, readJson("the config of the image", ImageConfig, config))
  context.pin(layers.map(({ digest }) => digest))
  for (const { digest, blob } of layers) await addLayer(folder, blobAt(blob.digest), digest, context, blob.digest)
  const digests = layers.map(({ digest }) => digest)
  return { id: chosen.digest, manifest: manifestText, config, layers: digests, names }
}

const refName = "org.opencontainers.image.ref.name"

function blobAt(digest: Digest): string {
  return `blobs/sha256/${hexOf(digest)}`
}

const DockerManifest = z
  .array(
    z.object({
      Config: z.string(),
      RepoTags: z.array(z.string()).nullish(),
      Layers: z.array(z.string()).max(layersMax),
    }),
  )
  .min(1)
  .max(100)

/** What `docker save` writes. Every image in it. */
export async function importDocker(folder: string, context: ImportContext): Promise<Imported[]> {
  const text = (await readBelow(folder, "manifest.json", manifestBytesMax)).toString()
  const imported: Imported[] = []
  for (const image of readJson("manifest.json", DockerManifest, text)) {
    const config = (await readBelow(folder, image.Config, configBytesMax)).toString()
    const ids = readJson("the config of the image", ImageConfig, config).rootfs.diff_ids
    if (ids.length !== image.Layers.length) throw new Fault("invalid", "the manifest and the config disagree on layers")
    context.pin(ids)
    for (const [index, digest] of ids.entries()) await addLayer(folder, image.Layers[index] ?? "", digest, context)
    imported.push({ ...describe(config, ids), names: image.RepoTags ?? [] })
  }
  return imported
}

async function addLayer(
  folder: string,
  name: string,
  digest: Digest,
  { store, signal, pin }: ImportContext,
  packed?: Digest,
): Promise<void> {
  await store.turn(digest, async () => {
    if (store.catalog.layer(digest)) return
    const file = await openBelow(folder, name)
    const hash = createHash("sha256")
    async function* bytes(): AsyncGenerator<Buffer, void, void> {
      for await (const chunk of file.createReadStream({ highWaterMark: 256 * 1024 })) {
        hash.update(chunk as Buffer)
        yield chunk as Buffer
      }
    }
    await store.add(bytes(), { expected: digest, signal, pin })
    const actual = finish(hash)
    if (packed !== undefined && actual !== packed) throw wrongDigest("the blob", packed, actual)
  })
}
