import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { digestBytes } from "../digest.ts"
import { mediaTypes } from "../manifest.ts"
import { describeImage } from "./registry.ts"

type Answer = (request: IncomingMessage, response: ServerResponse) => boolean | void

/** A registry with one image, `test:latest`, which first does what the test wants. */
export class FakeRegistry implements AsyncDisposable {
  readonly asked: string[] = []
  readonly blobs: ReadonlyMap<string, Buffer>
  readonly manifest: Buffer
  /** Looks at every request first; what it answers, nobody else does. */
  before: Answer = () => false
  readonly #server = createServer((request, response) => this.#answer(request, response))

  private constructor(layers: readonly Buffer[]) {
    const { manifest, blobs } = describeImage(layers)
    this.manifest = manifest
    this.blobs = new Map(blobs.map((blob) => [digestBytes(blob), blob]))
  }

  static async start(layers: readonly Buffer[]): Promise<FakeRegistry> {
    const registry = new FakeRegistry(layers)
    await new Promise<void>((resolve) => registry.#server.listen(0, "127.0.0.1", resolve))
    return registry
  }

  get host(): string {
    const address = this.#server.address()
    return `127.0.0.1:${typeof address === "object" && address ? address.port : 0}`
  }

  get name(): string {
    return `${this.host}/test:latest`
  }

  /** The biggest blob: a layer. */
  get layer(): { readonly digest: string; readonly bytes: Buffer } {
    const [digest = "", bytes = Buffer.alloc(0)] =
      [...this.blobs].toSorted(([, a], [, b]) => b.length - a.length)[0] ?? []
    return { digest, bytes }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { url = "" } = request
    this.asked.push(`${url}${request.headers.range === undefined ? "" : ` ${request.headers.range}`}`)
    if (this.before(request, response)) return
    if (url.startsWith("/v2/test/manifests/")) {
      response.writeHead(200, { "content-type": mediaTypes.ociManifest }).end(this.manifest)
      return
    }
    const blob = this.blobs.get(url.split("/").at(-1) ?? "")
    if (!blob) return void response.writeHead(404).end()
    const start = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0)
    if (start === 0) return void response.writeHead(200, { "content-length": blob.length }).end(blob)
    const range = `bytes ${start}-${blob.length - 1}/${blob.length}`
    response.writeHead(206, { "content-range": range, "content-length": blob.length - start }).end(blob.subarray(start))
  }
}
