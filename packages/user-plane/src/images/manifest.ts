import { Fault } from "@warren/base/fault.ts"
import { z } from "zod"
import { digestOf, isDigest, type Digest } from "./digest.ts"
import { layersMax } from "./limits.ts"

/** What registries and archives say. Only what we use is read; the texts themselves are kept as they came. */

const DigestText = z.string().refine(isDigest, "is not a sha256 digest")
const Descriptor = z.object({ mediaType: z.string(), digest: DigestText, size: z.int().min(0) })
export type Descriptor = z.output<typeof Descriptor>

export const Manifest = z.object({
  schemaVersion: z.literal(2),
  mediaType: z.string().optional(),
  config: Descriptor,
  layers: z.array(Descriptor).max(layersMax),
})
export type Manifest = z.output<typeof Manifest>

const PlatformShape = z.object({
  os: z.string(),
  architecture: z.string(),
  variant: z.string().optional(),
})

export const Index = z.object({
  schemaVersion: z.literal(2),
  mediaType: z.string().optional(),
  manifests: z
    .array(
      Descriptor.extend({
        platform: PlatformShape.optional(),
        annotations: z.record(z.string(), z.string()).optional(),
      }),
    )
    .max(1000),
})
export type Index = z.output<typeof Index>

export const ImageConfig = z.object({
  os: z.string().default("linux"),
  architecture: z.string().default(""),
  config: z
    .object({
      Env: z.array(z.string()).nullish(),
      WorkingDir: z.string().nullish(),
      User: z.string().nullish(),
      Cmd: z.array(z.string()).nullish(),
      Entrypoint: z.array(z.string()).nullish(),
      Labels: z.record(z.string(), z.string()).nullish(),
    })
    .nullish(),
  rootfs: z.object({ type: z.literal("layers"), diff_ids: z.array(DigestText).max(layersMax) }),
})
export type ImageConfig = z.output<typeof ImageConfig>

export const mediaTypes = {
  ociIndex: "application/vnd.oci.image.index.v1+json",
  ociManifest: "application/vnd.oci.image.manifest.v1+json",
  ociConfig: "application/vnd.oci.image.config.v1+json",
  ociLayer: "application/vnd.oci.image.layer.v1.tar",
  dockerList: "application/vnd.docker.distribution.manifest.list.v2+json",
  dockerManifest: "application/vnd.docker.distribution.manifest.v2+json",
} as const

const layerTypes = new Set([
  mediaTypes.ociLayer,
  `${mediaTypes.ociLayer}+gzip`,
  `${mediaTypes.ociLayer}+zstd`,
  "application/vnd.docker.image.rootfs.diff.tar",
  "application/vnd.docker.image.rootfs.diff.tar.gzip",
  "application/vnd.docker.image.rootfs.diff.tar.zstd",
])

/** Reads JSON that came from outside, as one of the shapes above. */
export function readJson<T>(what: string, shape: z.ZodType<T>, text: string): T {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new Fault("invalid", `${what} is not JSON`, { cause })
  }
  const read = shape.safeParse(value)
  if (read.success) return read.data
  const issue = read.error.issues[0]
  throw new Fault("invalid", `${what} is not one: ${issue?.path.join(".") ?? ""} ${issue?.message ?? ""}`)
}

export function isIndex(mediaType: string, text: string): boolean {
  if (mediaType === mediaTypes.ociIndex || mediaType === mediaTypes.dockerList) return true
  if (mediaType === mediaTypes.ociManifest || mediaType === mediaTypes.dockerManifest) return false
  // Manifests of the first days had no type in them, and some servers still give none.
  return Index.safeParse(JSON.parse(text)).success
}

export interface Layer {
  readonly blob: Descriptor
  /** Of the archive inside: the name of the layer here. */
  readonly digest: Digest
}

/** Layers with both their names, the bottom one first. */
export function layersOf(manifest: Manifest, config: ImageConfig): Layer[] {
  const ids = config.rootfs.diff_ids
  if (ids.length !== manifest.layers.length)
    throw new Fault("invalid", "the manifest and the config disagree on layers")
  return manifest.layers.map((blob, index) => {
    if (!layerTypes.has(blob.mediaType)) {
      throw new Fault("unsupported", `a layer of the type ${JSON.stringify(blob.mediaType)} cannot be used`)
    }
    return { blob, digest: digestOf(ids[index] ?? "") }
  })
}

export interface Platform {
  readonly os: string
  readonly architecture: string
  readonly variant?: string | undefined
}

const architectures: Readonly<Record<string, string>> = { x64: "amd64", ia32: "386", arm64: "arm64", arm: "arm" }

export function platformOf(text: string | undefined): Platform {
  if (text === undefined) return { os: "linux", architecture: architectures[process.arch] ?? process.arch }
  const [os = "", architecture = "", variant] = text.split("/")
  if (!/^[a-z0-9]+\/[a-z0-9_]+(?:\/[a-z0-9]+)?$/.test(text)) {
    throw new Fault("invalid", `${JSON.stringify(text)} is not a platform such as linux/amd64`)
  }
  return { os, architecture, variant }
}

/** The one of an index that fits. */
export function choose(index: Index, wanted: Platform): Index["manifests"][number] {
  const fit = index.manifests.find(
    ({ platform }) =>
      platform?.os === wanted.os &&
      platform.architecture === wanted.architecture &&
      (wanted.variant === undefined || platform.variant === wanted.variant),
  )
  const [only] = index.manifests
  const chosen = fit ?? (index.manifests.length === 1 && !only?.platform ? only : undefined)
  if (chosen) return chosen
  const there = index.manifests.flatMap(({ platform }) => (platform ? [`${platform.os}/${platform.architecture}`] : []))
  throw new Fault("not_found", `the image is not made for ${wanted.os}/${wanted.architecture}`, {
    hint: `it is there for ${[...new Set(there)].join(", ") || "nothing that is said"}`,
  })
}
