import { createReadStream } from "node:fs"
import { rm } from "node:fs/promises"
import { checkDigest, digestBytes, type Digest } from "../digest.ts"
import type { Progress } from "../events.ts"
import { configBytesMax, manifestBytesMax } from "../limits.ts"
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
  type Layer,
} from "../manifest.ts"
import { readReference, type Reference } from "../reference.ts"
import type { LayerStore, Pin } from "../store.ts"
import { download } from "./blob.ts"
import { RegistryClient, type RegistryOptions } from "./client.ts"

export interface PullOptions extends RegistryOptions {
  /** Such as `linux/arm64`; the machine's own unless said otherwise. */
  readonly platform?: string | undefined
  readonly progress?: Progress | undefined
  readonly signal?: AbortSignal | undefined
}

/** What was pulled, with all its layers in the store. */
export interface Pulled {
  readonly reference: Reference
  readonly id: Digest
  readonly manifest: string
  readonly config: string
  /** The bottom one first. */
  readonly layers: readonly Digest[]
}

/** Layers brought at once. */
const parallelMax = 3
const accept = [mediaTypes.ociIndex, mediaTypes.ociManifest, mediaTypes.dockerList, mediaTypes.dockerManifest].join(
  ", ",
)

/** Brings an image. The layers it adds are nobody's yet: whoever calls pins them. */
export async function pull(store: LayerStore, name: string, options: PullOptions, pin: Pin): Promise<Pulled> {
  const reference = readReference(name)
  const client = new RegistryClient(reference, options)
  const failed = new AbortController()
  const signal = AbortSignal.any([failed.signal, ...(options.signal ? [options.signal] : [])])
  const progress = options.progress ?? (() => undefined)
  const { id, text } = await resolve(client, reference, options.platform, signal)
  const manifest = readJson("the manifest", Manifest, text)
  const configText = await document(client, manifest.config, configBytesMax, signal)
  const layers = layersOf(manifest, readJson("the config of the image", ImageConfig, configText))
  const digests = layers.map(({ digest }) => digest)
  pin([...digests, ...layers.map(({ blob }) => blob.digest)])
  const bytes = layers.reduce((sum, { blob }) => sum + blob.size, 0)
  progress({ kind: "resolved", image: id, layers: layers.length, bytes })
  const waiting = [...new Map(layers.map((layer) => [layer.digest, layer])).values()]
  const work = async (): Promise<void> => {
    for (let layer = waiting.shift(); layer; layer = waiting.shift())
      await bring({ store, client, layer, progress, signal, pin })
  }
  const workers = Array.from({ length: parallelMax }, work)
  try {
    await Promise.all(workers)
  } catch (failure) {
    failed.abort(failure)
    // The others stop before the failure is told: nobody works on after the answer.
    await Promise.allSettled(workers)
    throw failure
  }
  return { reference, id, manifest: text, config: configText, layers: digests }
}

/** The manifest for this platform, verified by its digest. */
async function resolve(
  client: RegistryClient,
  reference: Reference,
  platform: string | undefined,
  signal: AbortSignal,
): Promise<{ id: Digest; text: string }> {
  const wanted = platformOf(platform)
  const headers = { accept }
  const first = reference.digest ?? reference.tag
  const top = await client.document(`manifests/${first}`, { headers, bytesMax: manifestBytesMax, signal })
  const id = digestBytes(top.bytes)
  if (reference.digest !== undefined) checkDigest("the manifest", reference.digest, top.bytes)
  const text = top.bytes.toString()
  readJson("the manifest", Index.or(Manifest), text)
  if (!isIndex(top.type, text)) return { id, text }
  const chosen = choose(readJson("the index", Index, text), wanted)
  const bytesMax = manifestBytesMax
  const manifest = await client.document(`manifests/${chosen.digest}`, { headers, bytesMax, signal })
  checkDigest("the manifest", chosen.digest, manifest.bytes)
  return { id: chosen.digest, text: manifest.bytes.toString() }
}

async function document(
  client: RegistryClient,
  { digest }: { readonly digest: Digest },
  bytesMax: number,
  signal: AbortSignal,
): Promise<string> {
  const { bytes } = await client.document(`blobs/${digest}`, { bytesMax, signal })
  checkDigest("the config of the image", digest, bytes)
  return bytes.toString()
}

interface Bringing {
  readonly store: LayerStore
  readonly client: RegistryClient
  readonly layer: Layer
  readonly progress: Progress
  readonly signal: AbortSignal
  readonly pin: Pin
}

function bring({ store, client, layer, progress, signal, pin }: Bringing): Promise<void> {
  const { digest, blob } = layer
  return store.turn(digest, async () => {
    signal.throwIfAborted()
    const path = store.blobPath(blob.digest)
    if (store.catalog.layer(digest)) {
      // Whoever made it a layer may have died before taking the blob away.
      await rm(path, { force: true })
      return progress({ kind: "layer.present", layer: digest })
    }
    const told = (bytes: number): void =>
      progress({ kind: "layer.downloading", layer: digest, bytes, totalBytes: blob.size })
    await download({ client, blob, path, progress: told, signal })
    progress({ kind: "layer.extracting", layer: digest })
    try {
      await store.add(createReadStream(path, { highWaterMark: 256 * 1024 }), { expected: digest, signal, pin })
    } finally {
      // Whole, it is a layer now or refused for good. Only who was told to stop comes back for it.
      if (!signal.aborted) await rm(path, { force: true })
    }
    progress({ kind: "layer.done", layer: digest })
  })
}
