import { Http, type Waiting } from "./http.ts"
import type { Output } from "./routes.ts"
import { Sessions } from "./sessions.ts"
import { Images, Memories, Secrets, Workspaces } from "./things.ts"

export interface WarrenOptions {
  /** `WARREN_URL` unless given; then the page's own origin in a browser, this machine in a program. */
  readonly url?: string
  /** `WARREN_TOKEN` unless given. A page that is signed in needs none. */
  readonly token?: string
  readonly fetch?: typeof fetch
}

const here = "http://127.0.0.1:7777"

/** A Warren. */
export class Warren {
  readonly sessions: Sessions
  readonly images: Images
  readonly workspaces: Workspaces
  readonly secrets: Secrets
  readonly memories: Memories
  readonly #http: Http

  constructor(options: WarrenOptions = {}) {
    const { process, location } = globalThis as Surroundings
    const url = options.url ?? process?.env?.["WARREN_URL"] ?? location?.origin ?? here
    const token = options.token ?? process?.env?.["WARREN_TOKEN"]
    // Called without its owner, a browser's own refuses.
    const ask = options.fetch ?? ((...request: Parameters<typeof fetch>) => globalThis.fetch(...request))
    this.#http = new Http({ url: url.replace(/\/+$/, ""), token, fetch: ask })
    this.sessions = new Sessions(this.#http)
    this.images = new Images(this.#http)
    this.workspaces = new Workspaces(this.#http)
    this.secrets = new Secrets(this.#http)
    this.memories = new Memories(this.#http)
  }

  /** How the runner is. */
  health(waiting?: Waiting): Promise<Output<"GET /v1/health">> {
    return this.#http.call("GET /v1/health", {}, waiting)
  }
}

/** A program has the one, a page the other. */
interface Surroundings {
  readonly process?: { readonly env?: Readonly<Record<string, string | undefined>> }
  readonly location?: { readonly origin: string }
}
