import { spawn } from "node:child_process"
import { writeFile } from "node:fs/promises"
import { createServer } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { gzipSync } from "node:zlib"
import { digestBytes } from "../digest.ts"
import { mediaTypes } from "../manifest.ts"
import { configOf } from "./docker-archive.ts"

/** Debian's docker-registry on a port of its own. */
export async function startRegistry(folder: string): Promise<AsyncDisposable & { readonly host: string }> {
  const port = await freePort()
  const config = `version: 0.1
log: { level: error }
storage: { filesystem: { rootdirectory: ${folder}/data }, delete: { enabled: true } }
http: { addr: "127.0.0.1:${port}" }
`
  await writeFile(`${folder}/registry.yml`, config)
  const child = spawn("docker-registry", ["serve", `${folder}/registry.yml`], { stdio: ["pipe", "pipe", "pipe"] })
  child.stdout.resume()
  child.stderr.resume()
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()))
  const host = `127.0.0.1:${port}`
  for (let tries = 0; ; tries++) {
    const isUp = await fetch(`http://${host}/v2/`).then(
      (response) => response.ok,
      () => false,
    )
    if (isUp) break
    if (tries > 200) throw new Error("the registry does not start")
    await sleep(50)
  }
  const dispose = async (): Promise<void> => {
    child.kill("SIGKILL")
    await ended
  }
  return { host, [Symbol.asyncDispose]: dispose }
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => resolve(typeof address === "object" && address ? address.port : 0))
    })
  })
}

interface Pushed {
  readonly digest: string
  readonly size: number
}

/** Puts an image into a registry: layers (archives, the bottom one first) are packed with gzip. */
export async function push(host: string, name: string, tag: string, layers: readonly Buffer[]): Promise<Pushed> {
  const { manifest, blobs } = describeImage(layers)
  for (const blob of blobs) await pushBlob(host, name, blob)
  return await pushManifest(host, name, tag, mediaTypes.ociManifest, manifest)
}

/** The documents and blobs of an image. */
export function describeImage(layers: readonly Buffer[]): { manifest: Buffer; blobs: Buffer[] } {
  const config = Buffer.from(configOf(layers, { Env: ["FROM=registry"] }))
  const packed = layers.map((layer) => gzipSync(layer, { level: 1 }))
  const descriptor = (mediaType: string, bytes: Buffer): object => ({
    mediaType,
    digest: digestBytes(bytes),
    size: bytes.length,
  })
  const manifest = {
    schemaVersion: 2,
    mediaType: mediaTypes.ociManifest,
    config: descriptor(mediaTypes.ociConfig, config),
    layers: packed.map((bytes) => descriptor(`${mediaTypes.ociLayer}+gzip`, bytes)),
  }
  return { manifest: Buffer.from(JSON.stringify(manifest)), blobs: [config, ...packed] }
}

async function pushBlob(host: string, name: string, blob: Buffer): Promise<void> {
  const start = await fetch(`http://${host}/v2/${name}/blobs/uploads/`, { method: "POST" })
  const location = new URL(start.headers.get("location") ?? "", `http://${host}`)
  location.searchParams.set("digest", digestBytes(blob))
  const headers = { "content-type": "application/octet-stream" }
  const done = await fetch(location, { method: "PUT", body: new Uint8Array(blob), headers })
  if (done.status !== 201) throw new Error(`the blob was not taken: ${done.status}`)
}

export async function pushManifest(
  host: string,
  name: string,
  tag: string,
  type: string,
  manifest: Buffer,
): Promise<Pushed> {
  const address = `http://${host}/v2/${name}/manifests/${tag}`
  const headers = { "content-type": type }
  const done = await fetch(address, { method: "PUT", body: new Uint8Array(manifest), headers })
  if (done.status !== 201) throw new Error(`the manifest was not taken: ${done.status} ${await done.text()}`)
  return { digest: digestBytes(manifest), size: manifest.length }
}
