import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { digestBytes } from "../digest.ts"
import { mediaTypes } from "../manifest.ts"
import { describeImage } from "./registry.ts"

/** An image of these layers (archives, the bottom one first) as a folder in OCI's layout. */
export function writeOciLayout(folder: string, name: string, layers: readonly Buffer[]): void {
  const { manifest, blobs } = describeImage(layers)
  mkdirSync(join(folder, "blobs/sha256"), { recursive: true })
  for (const blob of [manifest, ...blobs]) {
    writeFileSync(join(folder, "blobs/sha256", digestBytes(blob).slice(7)), blob)
  }
  const annotations = { "org.opencontainers.image.ref.name": name }
  const entry = { mediaType: mediaTypes.ociManifest, digest: digestBytes(manifest), size: manifest.length, annotations }
  writeFileSync(join(folder, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }))
  writeFileSync(join(folder, "index.json"), JSON.stringify({ schemaVersion: 2, manifests: [entry] }))
}
