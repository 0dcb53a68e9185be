import { Fault } from "@warren/base/fault.ts"
import type { FeedItem } from "@warren/sdk/feed.ts"
import { readFeedSocket } from "@warren/sdk/feed-socket.ts"
import { backoffMs, pause } from "@warren/sdk/pause.ts"
import type { FeedRoute, Input, Item } from "@warren/sdk/routes.ts"
import { http } from "./api.ts"
import { isOfRunner, noteFound, noteLost } from "./connection.ts"

interface Following<R extends FeedRoute> {
  readonly route: R
  readonly input: Input<R>
  readonly signal: AbortSignal
  /** Reads the state as it is now, and says after which number the feed goes on from it. */
  read(): Promise<number>
  each(entry: FeedItem<Item<R>>): void
}

/**
 * Keeps something that is shown true until the signal: reads it, follows its feed, goes on after the last number when the connection
 * was lost, and reads it anew when too much was missed.
 */
export async function keepTrue<R extends FeedRoute>({ route, input, signal, read, each }: Following<R>): Promise<void> {
  const name = `${route} ${JSON.stringify(input)}`
  let after: number | undefined
  let tries = 0
  const opened = (): void => {
    tries = 0
    noteFound(name)
  }
  while (!signal.aborted) {
    try {
      after ??= await read()
      for await (const entry of readFeedSocket(http, route, { ...input, after }, { signal, opened })) {
        after = entry.seq
        each(entry)
      }
    } catch (thrown) {
      if (signal.aborted) break
      const fault = Fault.from(thrown)
      if (fault.code !== "resync" && !isWorthWaiting(fault.code)) throw thrown
      if (fault.code !== "resync") noteLost(name, fault)
      // A connection says nothing about whether there is a runner behind it; that something can be read does.
      if (fault.code === "resync" || isOfRunner(fault)) after = undefined
    }
    await pause(backoffMs(++tries), signal).catch(() => undefined)
  }
  noteFound(name)
}

function isWorthWaiting(code: Fault["code"]): boolean {
  return code === "unavailable" || code === "timeout" || code === "limit" || code === "internal"
}
