import { eventsOf } from "./events.ts"
import { readFeed } from "./feed.ts"
import type { Body, Http, Waiting } from "./http.ts"
import { pages } from "./pages.ts"
import type { Input, Item, Message, Output, Rest } from "./routes.ts"
import type { Content } from "./files.ts"

/** What there is besides sessions. */

export class Images {
  readonly #http: Http

  constructor(http: Http) {
    this.#http = http
  }

  async list(waiting?: Waiting): Promise<Output<"GET /v1/images">["items"]> {
    return (await this.#http.call("GET /v1/images", {}, waiting)).items
  }

  inspect(name: string, waiting?: Waiting): Promise<Output<"GET /v1/images/details">> {
    return this.#http.call("GET /v1/images/details", { name }, waiting)
  }

  /** Brings an image from a registry, saying how far it is. Leaving stops it. */
  async *pull(
    name: string,
    { signal, ...wishes }: Waiting & Partial<Rest<"POST /v1/images/pull", "name">> = {},
  ): AsyncGenerator<Item<"POST /v1/images/pull">, void, void> {
    for await (const { item } of readFeed(this.#http, "POST /v1/images/pull", { name, ...wishes }, { signal }))
      yield item
  }

  /** Brings an image as an archive: a tree, an OCI layout, or what `docker save` writes. Its ids. */
  async import(
    archive: Content,
    { signal, ...wishes }: Waiting & Input<"POST /v1/images/import"> = {},
  ): Promise<string[]> {
    const response = await this.#http.open("POST /v1/images/import", wishes, { signal, body: archive as Body })
    return ((await response.json()) as { ids: string[] }).ids
  }

  /** Makes an image from a recipe and the files it copies, as a tar archive; says how far it is. Leaving stops it. */
  async *build(
    name: string,
    archive: Content,
    { signal, args, ...wishes }: Waiting & Partial<Rest<"POST /v1/images/build", "name">> = {},
  ): AsyncGenerator<Message<"POST /v1/images/build">, void, void> {
    const input = { name, ...wishes, ...(args === undefined ? {} : { args: JSON.stringify(args) }) }
    const options = { signal, body: archive as Body, headers: { accept: "text/event-stream" } }
    const response = await this.#http.open("POST /v1/images/build", input, options)
    for await (const { data } of eventsOf(response, signal)) yield JSON.parse(data) as Message<"POST /v1/images/build">
  }

  async tag(from: string, to: string, waiting?: Waiting): Promise<void> {
    await this.#http.call("POST /v1/images/tag", { from, to }, waiting)
  }

  /** An image of what a session has written. */
  async commit(session: string, name: string, waiting?: Waiting): Promise<string> {
    return (await this.#http.make("POST /v1/images/commit", { session, name }, waiting)).id
  }

  async delete(name: string, waiting?: Waiting): Promise<void> {
    await this.#http.call("DELETE /v1/images", { name }, waiting)
  }
}

export class Workspaces {
  readonly #http: Http

  constructor(http: Http) {
    this.#http = http
  }

  create({ signal, ...wishes }: Waiting & Input<"POST /v1/workspaces">): Promise<Output<"POST /v1/workspaces">> {
    return this.#http.make("POST /v1/workspaces", wishes, { signal })
  }

  get(name: string, waiting?: Waiting): Promise<Output<"GET /v1/workspaces/{name}">> {
    return this.#http.call("GET /v1/workspaces/{name}", { name }, waiting)
  }

  list(waiting?: Waiting): AsyncGenerator<Output<"GET /v1/workspaces">["items"][number], void, void> {
    return pages(this.#http, "GET /v1/workspaces", {}, waiting)
  }

  files(
    name: string,
    { path = "", signal }: Waiting & { path?: string } = {},
  ): AsyncGenerator<Output<"GET /v1/workspaces/{name}/files">["items"][number], void, void> {
    return pages(this.#http, "GET /v1/workspaces/{name}/files", { name, path }, { signal })
  }

  async read(name: string, path: string, { signal }: Waiting = {}): Promise<Uint8Array<ArrayBuffer>> {
    const response = await this.#http.open("GET /v1/workspaces/{name}/content", { name, path }, { signal })
    return new Uint8Array(await response.arrayBuffer())
  }

  async write(name: string, path: string, body: Content, { signal }: Waiting = {}): Promise<void> {
    const options = { signal, body: body as Body }
    await this.#http.open("PUT /v1/workspaces/{name}/content", { name, path }, options)
  }

  async delete(name: string, { signal, force = false }: Waiting & { force?: boolean } = {}): Promise<void> {
    await this.#http.call("DELETE /v1/workspaces/{name}", { name, force }, { signal })
  }
}

export class Secrets {
  readonly #http: Http

  constructor(http: Http) {
    this.#http = http
  }

  /** It cannot be read back. */
  set(name: string, value: string, waiting?: Waiting): Promise<Output<"PUT /v1/secrets/{name}">> {
    return this.#http.call("PUT /v1/secrets/{name}", { name, value }, waiting)
  }

  list(waiting?: Waiting): AsyncGenerator<Output<"GET /v1/secrets">["items"][number], void, void> {
    return pages(this.#http, "GET /v1/secrets", {}, waiting)
  }

  async delete(name: string, waiting?: Waiting): Promise<void> {
    await this.#http.call("DELETE /v1/secrets/{name}", { name }, waiting)
  }
}

export class Memories {
  readonly #http: Http

  constructor(http: Http) {
    this.#http = http
  }

  add(
    text: string,
    options: Waiting & Partial<Rest<"POST /v1/memories", "text">> = {},
  ): Promise<Output<"POST /v1/memories">> {
    const { signal, ...wishes } = options
    return this.#http.make("POST /v1/memories", { text, ...wishes }, { signal })
  }

  list({ signal, ...which }: Waiting & { tag?: string } = {}): AsyncGenerator<Output<"POST /v1/memories">, void, void> {
    return pages(this.#http, "GET /v1/memories", which, { signal })
  }

  search(
    query: string,
    { signal, ...which }: Waiting & Partial<Rest<"GET /v1/memories/search", "query">> = {},
  ): Promise<Output<"GET /v1/memories/search">> {
    return this.#http.call("GET /v1/memories/search", { query, ...which }, { signal })
  }

  async delete(id: string, waiting?: Waiting): Promise<void> {
    await this.#http.call("DELETE /v1/memories/{id}", { id }, waiting)
  }
}
