import { Fault } from "@warren/base/fault.ts"
import { openSocket } from "#web-socket"
import type { FeedItem } from "./feed.ts"
import { toFault, type Http, type Waiting } from "./http.ts"
import { placed, query, type FeedRoute, type Input, type Item } from "./routes.ts"

type Told<T> = FeedItem<T> | { readonly fault: Readonly<Record<string, unknown>> }

/**
 * A feed as it comes, once, on a WebSocket. For pages: a browser has only six connections to a server for all its tabs, and a feed by
 * events would keep one. `opened` is called when there is a connection.
 */
export async function* readFeedSocket<R extends FeedRoute>(
  http: Http,
  route: R,
  input: Input<R>,
  { signal, opened }: Waiting & { opened?(): void } = {},
): AsyncGenerator<FeedItem<Item<R>>, void, void> {
  signal?.throwIfAborted()
  const { path, rest } = placed(route, input)
  const { url, headers } = http.socket(path + query(rest))
  const socket = openSocket(url, headers)
  const told: Told<Item<R>>[] = []
  let wake = (): void => undefined
  let over: (() => Fault | undefined) | undefined
  const end = (how: () => Fault | undefined): void => {
    over ??= how
    wake()
  }
  const on = (type: string, listen: (event: never) => void): void => socket.addEventListener(type, listen)
  on("open", () => opened?.())
  on("message", ({ data }: { data: string }) => {
    told.push(JSON.parse(data) as Told<Item<R>>)
    wake()
  })
  on("error", () => undefined)
  on("close", ({ code }: { code: number }) =>
    end(() => (code === 1000 ? undefined : new Fault("unavailable", "the connection was lost"))),
  )
  const abort = (): void => end(() => undefined)
  signal?.addEventListener("abort", abort, { once: true })
  try {
    for (;;) {
      const next = told.shift()
      if (next && "fault" in next) throw toFault(next.fault)
      if (next) yield next
      else if (over) break
      else await new Promise<void>((resolve) => (wake = resolve))
      signal?.throwIfAborted()
    }
    const fault = over()
    if (fault) throw fault
  } finally {
    signal?.removeEventListener("abort", abort)
    socket.close()
  }
}
