import { Fault } from "@warren/base/fault.ts"
import { readFeed } from "./feed.ts"
import type { Body, Http, Waiting } from "./http.ts"
import type { Item, Output, Rest } from "./routes.ts"

const content = "GET /v1/sessions/{session}/files/content"
const writing = "PUT /v1/sessions/{session}/files/content"
const listing = "GET /v1/sessions/{session}/files"
const statting = "GET /v1/sessions/{session}/files/stat"
const watching = "GET /v1/sessions/{session}/files/watch"

type With<R extends Parameters<Http["open"]>[0]> = Waiting & Partial<Rest<R, "session" | "path">>
export type FileEntry = Output<typeof statting>
export type FileChange = Item<typeof watching>
export type Content = string | Uint8Array<ArrayBuffer> | Blob | ReadableStream<Uint8Array>

/** The files of one session. Paths without `/` in front are below `/workspace`. */
export class Files {
  readonly #http: Http
  readonly #session: string

  constructor(http: Http, session: string) {
    this.#http = http
    this.#session = session
  }

  async read(path: string, options: With<typeof content> = {}): Promise<Uint8Array<ArrayBuffer>> {
    const response = await this.#content(path, options)
    return new Uint8Array(await response.arrayBuffer().catch(broken(options.signal)))
  }

  /** Its bytes as they come, for what is too big to hold. */
  async download(path: string, options: With<typeof content> = {}): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
    const { body } = await this.#content(path, options)
    return body ?? new Blob([]).stream()
  }

  async readText(path: string, options: With<typeof content> = {}): Promise<string> {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(await this.read(path, options))
  }

  /** Nothing of it is seen until all of it is there. Folders above it are made. */
  async write(path: string, body: Content, options: With<typeof writing> = {}): Promise<{ bytes: number }> {
    const { signal, ...wishes } = options
    const response = await this.#http.open(writing, this.#at(path, wishes), { signal, body: body as Body })
    return (await response.json()) as { bytes: number }
  }

  async list(path: string, options: With<typeof listing> = {}): Promise<FileEntry[]> {
    const { signal, ...wishes } = options
    const { entries, truncated } = await this.#http.call(listing, this.#at(path, wishes), { signal })
    if (truncated) {
      throw new Fault("limit", `there is more in ${path} than was asked for`, {
        hint: "a higher `limit`, a lower `depth`",
      })
    }
    return entries
  }

  stat(path: string, options: With<typeof statting> = {}): Promise<FileEntry> {
    const { signal, ...wishes } = options
    return this.#http.call(statting, this.#at(path, wishes), { signal })
  }

  exists(path: string, options: With<typeof statting> = {}): Promise<boolean> {
    return this.stat(path, options).then(
      () => true,
      (thrown: unknown) => {
        if (thrown instanceof Fault && thrown.code === "not_found") return false
        throw thrown
      },
    )
  }

  async mkdir(path: string, options: With<"POST /v1/sessions/{session}/files/folders"> = {}): Promise<void> {
    const { signal, ...wishes } = options
    await this.#http.call("POST /v1/sessions/{session}/files/folders", this.#at(path, wishes), { signal })
  }

  async move(path: string, to: string, options: Waiting & { user?: string; overwrite?: boolean } = {}): Promise<void> {
    const { signal, ...wishes } = options
    await this.#http.call("POST /v1/sessions/{session}/files/move", { ...this.#at(path, wishes), to }, { signal })
  }

  async remove(path: string, options: With<"DELETE /v1/sessions/{session}/files"> = {}): Promise<void> {
    const { signal, ...wishes } = options
    await this.#http.call("DELETE /v1/sessions/{session}/files", this.#at(path, wishes), { signal })
  }

  /** Changes as they happen. What happened while nobody watched is not told: a lost connection is `resync`. */
  async *watch(path: string, options: With<typeof watching> = {}): AsyncGenerator<FileChange, void, void> {
    const { signal, ...wishes } = options
    try {
      for await (const { item } of readFeed(this.#http, watching, this.#at(path, wishes), { signal })) yield item
    } catch (thrown) {
      if (!(thrown instanceof Fault) || thrown.code !== "unavailable") throw thrown
      throw new Fault("resync", "changes may have been missed", { cause: thrown, hint: "look again, then watch again" })
    }
  }

  #content(path: string, { signal, ...wishes }: With<typeof content>): Promise<Response> {
    return this.#http.open(content, this.#at(path, wishes), { signal })
  }

  #at<T extends object>(path: string, wishes: T): T & { session: string; path: string } {
    return { ...wishes, session: this.#session, path: path.startsWith("/") ? path : `/workspace/${path}` }
  }
}

function broken(signal: AbortSignal | undefined): (cause: unknown) => never {
  return (cause) => {
    signal?.throwIfAborted()
    throw new Fault("unavailable", "the answer broke off", { cause })
  }
}
