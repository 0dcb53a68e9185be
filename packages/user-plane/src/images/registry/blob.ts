import { createReadStream } from "node:fs"
import { open, rm, type FileHandle } from "node:fs/promises"
import type { Hash } from "node:crypto"
import { Fault, isCancellation } from "@warren/base/fault.ts"
import { retry } from "@warren/base/retry.ts"
import { finish, newHash, wrongDigest } from "../digest.ts"
import type { Descriptor } from "../manifest.ts"
import type { RegistryClient } from "./client.ts"

interface Download {
  readonly client: RegistryClient
  readonly blob: Descriptor
  readonly path: string
  readonly progress: (bytes: number) => void
  readonly signal: AbortSignal
}

/**
 * Collects a blob in the file `path`, going on where the last try stopped, be it of this process or of one before. When it returns,
 * the file is whole and is what the digest says; a file that turns out to be something else is gone.
 */
export async function download({ client, blob, path, progress, signal }: Download): Promise<void> {
  const file = await open(path, "a+", 0o600)
  try {
    const part = await Part.read(file, path, blob)
    progress(part.bytes)
    // A try that brought something counts as the first: only standing still wears patience out.
    for (let before = -1; part.bytes < blob.size && part.bytes > before;) {
      before = part.bytes
      try {
        await retry(() => part.fetch(client, { progress, signal }), {
          ...client.tries,
          clock: client.clock,
          signal,
          isRetryable: isWorthIt,
        })
      } catch (failure) {
        if (!isWorthIt(failure) || part.bytes === before) throw failure
      }
    }
    const actual = part.digest()
    if (actual === blob.digest && part.bytes === blob.size) return
    await rm(path, { force: true })
    throw wrongDigest("the blob", blob.digest, actual)
  } finally {
    await file.close()
  }
}

function isWorthIt(failure: unknown): boolean {
  return failure instanceof Fault && failure.isRetryable
}

interface Listener {
  readonly progress: (bytes: number) => void
  readonly signal: AbortSignal
}

class Part {
  bytes = 0
  readonly #file: FileHandle
  readonly #blob: Descriptor
  #hash: Hash = newHash()

  private constructor(file: FileHandle, blob: Descriptor) {
    this.#file = file
    this.#blob = blob
  }

  /** What is there already. More than the whole is worth nothing. */
  static async read(file: FileHandle, path: string, blob: Descriptor): Promise<Part> {
    const part = new Part(file, blob)
    if ((await file.stat()).size > blob.size) await file.truncate(0)
    for await (const chunk of createReadStream(path)) part.#count(chunk as Buffer)
    return part
  }

  digest(): ReturnType<typeof finish> {
    return finish(this.#hash.copy())
  }

  async fetch(client: RegistryClient, listener: Listener): Promise<void> {
    const { signal } = listener
    const headers = this.bytes > 0 ? { range: `bytes=${this.bytes}-` } : {}
    const response = await client
      .get(`blobs/${this.#blob.digest}`, { headers, signal })
      .catch(async (failure: unknown) => {
        // The part we have is not one of what they have.
        if (failure instanceof Fault && failure.code === "resync") await this.#restart()
        throw failure
      })
    const start = /^bytes (\d+)-/.exec(response.headers.get("content-range") ?? "")?.[1]
    if (response.status === 200 || Number(start) !== this.bytes) await this.#restart()
    if (response.status === 206 && Number(start) !== this.bytes) {
      await response.body?.cancel()
      throw new Fault("unavailable", "the registry sent another part than the one asked for")
    }
    await this.#receive(response, client, listener)
    if (this.bytes < this.#blob.size)
      throw new Fault("unavailable", `the blob ended after ${this.bytes} of ${this.#blob.size} bytes`)
  }

  async #receive(response: Response, { silenceMs }: RegistryClient, { progress, signal }: Listener): Promise<void> {
    const reader = (response.body as ReadableStream<Uint8Array> | null)?.getReader()
    if (!reader) return
    let isSilent = false
    const patience = setTimeout(() => {
      isSilent = true
      void reader.cancel().catch(() => undefined)
    }, silenceMs)
    try {
      for (let next = await reader.read(); !next.done; next = await reader.read()) {
        patience.refresh()
        await this.#keep(next.value)
        progress(this.bytes)
      }
      if (isSilent) throw new Fault("timeout", "the registry fell silent")
    } catch (cause) {
      signal.throwIfAborted()
      if (cause instanceof Fault || isCancellation(cause)) throw cause
      throw new Fault("unavailable", "the connection to the registry broke", { cause })
    } finally {
      clearTimeout(patience)
      await reader.cancel().catch(() => undefined)
    }
  }

  async #keep(chunk: Uint8Array): Promise<void> {
    if (this.bytes + chunk.length > this.#blob.size) {
      await this.#restart()
      throw new Fault("invalid", `the blob ${this.#blob.digest} is longer than the manifest says`)
    }
    await this.#file.appendFile(chunk)
    this.#count(chunk)
  }

  async #restart(): Promise<void> {
    await this.#file.truncate(0)
    this.#hash = newHash()
    this.bytes = 0
  }

  #count(chunk: Uint8Array): void {
    this.#hash.update(chunk)
    this.bytes += chunk.length
  }
}
