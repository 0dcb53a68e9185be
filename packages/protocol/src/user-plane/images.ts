import { z } from "zod"
import { contract } from "../contract.ts"

const name = z.string().min(1).max(512)
const done = z.object({ ok: z.literal(true) })

export const Image = z
  .object({
    id: z.string(),
    names: z.array(z.string()),
    madeAt: z.iso.datetime(),
    bytes: z.number(),
    isBuiltIn: z.boolean(),
  })
  .meta({ id: "Image" })

const ImageDetails = z
  .object({
    ...Image.shape,
    layers: z.array(z.object({ digest: z.string(), bytes: z.number(), entries: z.number() })),
    env: z.array(z.string()),
    workdir: z.string(),
    user: z.string(),
    command: z.array(z.string()),
    platform: z.string(),
    usedBy: z.array(z.string()),
  })
  .meta({ id: "ImageDetails" })

/** What an image is being brought with: words for people, and the end with its id. */
export const ImageProgress = z
  .object({
    text: z.string().optional(),
    bytes: z.number().optional(),
    totalBytes: z.number().optional(),
    ids: z.array(z.string()).optional().meta({ description: "In the last item: what was made." }),
  })
  .meta({ id: "ImageProgress" })

/** In a query it is one text. */
const BuildArgs = z.union([
  z.record(z.string(), z.string()),
  z
    .string()
    .max(8 * 1024)
    .transform(jsonOf)
    .pipe(z.record(z.string(), z.string())),
])

function jsonOf(text: string, { addIssue }: { addIssue(message: string): void }): unknown {
  try {
    return JSON.parse(text)
  } catch {
    addIssue("it is not JSON")
    return undefined
  }
}

export const imageCalls = contract({
  "image.list": {
    since: 1,
    scope: "images:read",
    http: "GET /v1/images",
    doc: "The images there are.",
    in: z.object({}),
    out: z.object({ items: z.array(Image) }),
  },
  "image.inspect": {
    since: 1,
    scope: "images:read",
    http: "GET /v1/images/details",
    doc: "What an image is made of.",
    in: z.object({ name }),
    out: ImageDetails,
  },
  "image.pull": {
    since: 1,
    scope: "images:write",
    http: "POST /v1/images/pull",
    doc: "Bring an image from a registry. Leaving stops it; what has come is kept for the next try.",
    in: z.object({
      name,
      platform: z.string().max(64).optional(),
      username: z.string().max(256).optional(),
      password: z.string().max(4096).optional(),
    }),
    each: ImageProgress,
  },
  "image.import": {
    since: 1,
    scope: "images:write",
    http: "POST /v1/images/import",
    body: "bytes",
    doc: "Bring an image as an archive: a tree, an OCI layout, or what `docker save` writes.",
    in: z.object({
      name: name.optional(),
      format: z.enum(["rootfs", "oci", "docker"]).optional(),
      platform: z.string().max(64).optional(),
    }),
    up: z.object({ op: z.literal("eof") }),
    down: ImageProgress,
  },
  "image.build": {
    since: 1,
    scope: "images:write",
    http: "POST /v1/images/build",
    body: "bytes",
    doc: "Make an image from a recipe. The files it copies are sent as a tar archive.",
    in: z.object({
      name,
      recipe: z
        .string()
        .max(256 * 1024)
        .optional()
        .meta({ description: "The file `Recipe` of the archive when absent, or its `Dockerfile`." }),
      args: BuildArgs.default({}),
      network: z.enum(["none", "bridge", "host"]).default("bridge"),
    }),
    up: z.object({ op: z.literal("eof") }),
    down: ImageProgress,
  },
  "image.make": {
    since: 1,
    scope: "images:write",
    http: "POST /v1/images/make",
    doc: "Make an image whose recipe comes with Warren, and those it stands on.",
    in: z.object({ name: z.enum(["base", "agent", "editor", "desktop"]) }),
    each: ImageProgress,
  },
  "image.tag": {
    since: 1,
    scope: "images:write",
    http: "POST /v1/images/tag",
    doc: "Give an image one more name.",
    in: z.object({ from: name, to: name }),
    out: done,
  },
  "image.delete": {
    since: 1,
    scope: "images:write",
    http: "DELETE /v1/images",
    doc: "Take a name away; the image with its last one.",
    in: z.object({ name }),
    out: done,
  },
  "image.gc": {
    since: 1,
    scope: "images:write",
    http: "POST /v1/images/gc",
    doc: "Remove what nobody uses.",
    in: z.object({}),
    out: z.object({ images: z.int(), layers: z.int(), blobs: z.int() }),
  },
  "image.commit": {
    since: 1,
    scope: "images:write",
    http: "POST /v1/images/commit",
    makes: true,
    doc: "Make an image of what a session has written. The session must be of an image with layers.",
    in: z.object({ session: z.string().max(128), name }),
    out: z.object({ id: z.string() }),
    timeoutMs: 600_000,
  },
  "pool.list": {
    since: 1,
    scope: "images:read",
    http: "GET /v1/pools",
    doc: "Sandboxes that wait ready.",
    in: z.object({}),
    out: z.object({
      pools: z.array(
        z.object({
          key: z.string(),
          image: z.string(),
          ready: z.int(),
          wanted: z.int(),
          hits: z.int(),
          misses: z.int(),
        }),
      ),
    }),
  },
})
