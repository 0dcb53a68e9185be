import { Fault } from "@warren/base/fault.ts"
import { eventsOf } from "./events.ts"
import type { Http, Waiting } from "./http.ts"
import { backoffMs, pause } from "./pause.ts"
import type { FeedRoute, Input, Item } from "./routes.ts"

export interface FeedItem<T> {
  /** Its number: pass it as `after` to go on behind it. */
  readonly seq: number
  readonly item: T
}

const eventStream = { accept: "text/event-stream" }

/** A feed as it comes, once: when the connection is lost it says so. */
export async function* readFeed<R extends FeedRoute>(
  http: Http,
  route: R,
  input: Input<R>,
  { signal }: Waiting = {},
): AsyncGenerator<FeedItem<Item<R>>, void, void> {
  const response = await http.open(route, input, { signal, headers: eventStream })
  for await (const { event, id, data } of eventsOf(response, signal)) {
    if (event === "item") yield { seq: Number(id), item: JSON.parse(data) as Item<R> }
  }
}

type Resumable = { [R in FeedRoute]: "after" extends keyof Input<R> ? R : never }[FeedRoute]

/**
 * A feed that outlives its connections: when one is lost, it goes on after the last number it saw. Where what came in
 * between is not kept any more it throws `resync`: read the state anew, then follow again.
 */
export async function* follow<R extends Resumable>(
  http: Http,
  route: R,
  input: Input<R>,
  waiting: Waiting = {},
): AsyncGenerator<FeedItem<Item<R>>, void, void> {
  let resumed = {}
  for (let tries = 0; ;) {
    try {
      for await (const entry of readFeed(http, route, { ...input, ...resumed }, waiting)) {
        resumed = { after: entry.seq }
        tries = 0
        yield entry
      }
      return
    } catch (thrown) {
      waiting.signal?.throwIfAborted()
      if (!(thrown instanceof Fault) || thrown.code !== "unavailable") throw thrown
      // As long as somebody reads: a Warren that is restarted is back in a while.
      await pause(backoffMs(++tries), waiting.signal)
    }
  }
}
