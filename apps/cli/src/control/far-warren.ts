import { Fault } from "@warren/base/fault.ts"
import type { Answer, Asked, CallName, FeedName, Item, Numbered } from "@warren/protocol/contract.ts"
import { userPlane } from "@warren/protocol/user-plane.ts"
import { readFeed } from "@warren/sdk/feed.ts"
import { Http } from "@warren/sdk/http.ts"
import type { CallRoute, FeedRoute } from "@warren/sdk/routes.ts"
import type { Runner } from "../runner/runner.ts"

type Plane = typeof userPlane

/** What a chat asks, wherever the runner is. */
export type Asking = Pick<Runner, "call" | "callAnyway" | "feed">

/** A Warren somewhere else, over HTTP, asked like the runner of this machine. */
export class FarWarren implements Asking {
  readonly #http: Http
  readonly #signal: AbortSignal

  constructor(url: URL, token: string, signal: AbortSignal) {
    if (token === "") throw new Fault("unauthenticated", "a token is missing", { hint: "put one into WARREN_TOKEN" })
    this.#http = new Http({ url: url.href.replace(/\/$/, ""), token, fetch })
    this.#signal = signal
  }

  call<K extends CallName<Plane>>(name: K, input: Asked<Plane, K>, signal = this.#signal): Promise<Answer<Plane, K>> {
    return this.#ask(name, input, signal)
  }

  callAnyway<K extends CallName<Plane>>(name: K, input: Asked<Plane, K>): Promise<Answer<Plane, K>> {
    return this.#ask(name, input)
  }

  async *feed<K extends FeedName<Plane>>(name: K, input: Asked<Plane, K>): AsyncGenerator<Numbered<Item<Plane, K>>> {
    const items = readFeed(this.#http, routeOf(name) as FeedRoute, input as never, { signal: this.#signal })
    yield* items as AsyncGenerator<Numbered<Item<Plane, K>>>
  }

  #ask<K extends CallName<Plane>>(name: K, input: object, signal?: AbortSignal): Promise<Answer<Plane, K>> {
    const answer = this.#http.call(routeOf(name) as CallRoute, input, { signal })
    return answer as Promise<unknown> as Promise<Answer<Plane, K>>
  }
}

function routeOf(name: CallName<Plane> | FeedName<Plane>): string {
  const { http } = userPlane[name] as { readonly http?: string }
  if (http === undefined) throw new Fault("unsupported", `${name} cannot be asked over HTTP`)
  return http
}
