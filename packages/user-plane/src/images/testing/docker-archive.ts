import { digestBytes, hexOf } from "../digest.ts"
import { writeTar } from "../tar/writer.ts"
import type { Content } from "./archives.ts"

interface TestImage {
  readonly name: string
  /** Archives, the bottom one first. */
  readonly layers: readonly Buffer[]
  readonly config?: object
}

/** What `docker save` would write. */
export function dockerArchive(images: readonly TestImage[]): Buffer {
  const entries: Content[] = []
  const add = (name: string, content: Buffer): void => {
    if (!entries.some((entry) => entry.name === name)) entries.push({ name, kind: "file", content })
  }
  const manifest = images.map(({ name, layers, config = {} }) => {
    const text = Buffer.from(configOf(layers, config))
    const configName = `${hexOf(digestBytes(text))}.json`
    add(configName, text)
    const names = layers.map((layer) => `${hexOf(digestBytes(layer))}/layer.tar`)
    layers.forEach((layer, index) => add(names[index] ?? "", layer))
    return { Config: configName, RepoTags: [name], Layers: names }
  })
  add("manifest.json", Buffer.from(JSON.stringify(manifest)))
  return writeTar(entries)
}

export function configOf(layers: readonly Buffer[], config: object): string {
  const ids = layers.map((layer) => digestBytes(layer))
  return JSON.stringify({ os: "linux", architecture: "amd64", config, rootfs: { type: "layers", diff_ids: ids } })
}
