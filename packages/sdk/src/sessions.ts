import { follow, type FeedItem } from "./feed.ts"
import type { Http, Waiting } from "./http.ts"
import { pages } from "./pages.ts"
import type { Input, Item, Rest } from "./routes.ts"
import { Session, type SessionInfo } from "./session.ts"

export type SessionWishes = Input<"POST /v1/sessions">
type SessionChange = FeedItem<Item<"GET /v1/sessions/events">>

interface Making extends Waiting {
  /** Whether it stays when its object is disposed. */
  readonly keep?: boolean
}

export class Sessions {
  readonly #http: Http

  constructor(http: Http) {
    this.#http = http
  }

  async create(wishes: SessionWishes & Making = {}): Promise<Session> {
    const { signal, keep = false, ...input } = wishes
    return new Session(this.#http, await this.#http.make("POST /v1/sessions", input, { signal }), keep)
  }

  /** By id or name. It stays when its object is disposed. */
  async get(id: string, waiting: Waiting = {}): Promise<Session> {
    return new Session(this.#http, await this.#http.call("GET /v1/sessions/{id}", { id }, waiting), true)
  }

  /** The session with this key; a new one when there is none. It stays when its object is disposed. */
  async getOrCreate(
    key: string,
    wishes: Partial<Rest<"PUT /v1/sessions/by-key/{key}", "key">> & Waiting = {},
  ): Promise<Session & { readonly isNew: boolean }> {
    const { signal, ...input } = wishes
    const answer = await this.#http.call("PUT /v1/sessions/by-key/{key}", { key, ...input }, { signal })
    return Object.assign(new Session(this.#http, answer.session, true), { isNew: answer.isNew })
  }

  /** All of them, the one made last first, a page at a time as they are asked for. */
  list({ signal, ...which }: Input<"GET /v1/sessions"> & Waiting = {}): AsyncGenerator<SessionInfo, void, void> {
    return pages(this.#http, "GET /v1/sessions", which, { signal })
  }

  /** Every change of every session after number `after`. It outlives lost connections; see `resync`. */
  events({ signal, after = 0 }: Waiting & { after?: number } = {}): AsyncGenerator<SessionChange, void, void> {
    return follow(this.#http, "GET /v1/sessions/events", { after }, { signal })
  }
}
