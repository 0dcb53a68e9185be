import { createReadStream, type ReadStream } from "node:fs"
import { lstat, mkdir, stat } from "node:fs/promises"
import { join } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import { decompress } from "../layer/decompress.ts"
import { unpack } from "../layer/packed.ts"
import type { ArchiveLimits } from "../limits.ts"
import type { LayerStore } from "../store.ts"
import { ByteSource } from "../tar/byte-source.ts"
import { TarReader } from "../tar/reader.ts"

export type ArchiveFormat = "rootfs" | "oci" | "docker"

/** An archive of images has few files, all of them shallow. */
const archiveOfImages = { entriesMax: 10_000, depthMax: 8 } satisfies Partial<ArchiveLimits>

export function readArchive(path: string): ReadStream {
  return createReadStream(path, { highWaterMark: 256 * 1024 })
}

/** What an archive or folder is, by what it holds. */
export async function formatOf(path: string, limits: ArchiveLimits): Promise<ArchiveFormat> {
  const stats = await stat(path).catch((cause: unknown) => {
    throw new Fault("not_found", `there is nothing at ${JSON.stringify(path)}`, { cause })
  })
  if (stats.isDirectory()) {
    if (await lstat(join(path, "oci-layout")).catch(() => undefined)) return "oci"
    throw new Fault("invalid", "the folder is no OCI layout: it has no file oci-layout")
  }
  const names = await namesOf(path, limits)
  if (names.has("oci-layout")) return "oci"
  return names.has("manifest.json") && !hasTree(names) ? "docker" : "rootfs"
}

/** What is in every tree and in no archive of images. */
const treeNames = ["bin", "dev", "etc", "home", "lib", "opt", "proc", "root", "sbin", "tmp", "usr", "var"]

function hasTree(names: ReadonlySet<string>): boolean {
  return treeNames.some((name) => names.has(name))
}

/** The names at the top of an archive, as far as one must read to tell what it is. */
async function namesOf(path: string, limits: ArchiveLimits): Promise<ReadonlySet<string>> {
  const source = new ByteSource(decompress(readArchive(path), limits))
  const reader = new TarReader(source, limits)
  const names = new Set<string>()
  try {
    for (let entry = await reader.next(); entry && !hasTree(names); entry = await reader.next()) {
      names.add(entry.name.replace(/^(?:\.\/)+/, "").split("/")[0] ?? "")
    }
  } finally {
    await source.close()
  }
  return names
}

/** The folder of an archive of images: itself, or what is in it, extracted with the same care as a layer. */
export async function opened(
  store: LayerStore,
  path: string,
  signal: AbortSignal | undefined,
): Promise<AsyncDisposable & { readonly folder: string }> {
  if ((await stat(path)).isDirectory()) return { folder: path, [Symbol.asyncDispose]: () => Promise.resolve() }
  const draft = await store.draft()
  try {
    const root = join(draft.path, "root")
    await mkdir(root)
    const limits = { ...store.limits, ...archiveOfImages }
    await unpack(readArchive(path), { root, scratch: draft.path, limits, signal, isOurs: true })
    return { folder: root, [Symbol.asyncDispose]: () => draft[Symbol.asyncDispose]() }
  } catch (failure) {
    await draft[Symbol.asyncDispose]()
    throw failure
  }
}
