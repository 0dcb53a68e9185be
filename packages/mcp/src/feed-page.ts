import { Fault } from "@warren/base/fault.ts"
import type { Item, Numbered } from "@warren/protocol/contract.ts"
import type { userPlane } from "@warren/protocol/user-plane.ts"
import type { Asking } from "./asking.ts"

export const feedLimits = { itemsMax: 1_000, charsMax: 128 * 1024 } as const

type FeedItem = Item<typeof userPlane, "session.feed">
interface Page {
  readonly items: readonly Numbered<FeedItem>[]
  /** Where to go on. */
  readonly next: number
  readonly hasMore: boolean
}

interface Wanted {
  readonly session: string
  readonly after: number
  readonly limit: number
  readonly waitMs: number
}

/** Part of a session's feed: what there is by now, or with patience the first that happens. */
export async function readFeed({ session, after, limit, waitMs }: Wanted, asking: Asking): Promise<Page> {
  const { feedSeq } = await asking.call("agent.get", { session })
  const items: Numbered<FeedItem>[] = []
  if (feedSeq <= after && waitMs === 0) return { items, next: after, hasMore: false }
  const patience = feedSeq > after ? patienceMs : waitMs
  const until = AbortSignal.any([asking.signal, AbortSignal.timeout(patience)])
  let [next, chars] = [after, 0]
  try {
    for await (const numbered of asking.until(until).feed("session.feed", { id: session, after })) {
      next = numbered.seq
      chars += add(items, numbered)
      if (items.length >= limit || chars >= feedLimits.charsMax || next >= feedSeq) break
    }
  } catch (thrown) {
    // The time is up: what there is is the answer.
    if (asking.signal.aborted || !until.aborted) throw thrown
    if (items.length === 0 && feedSeq > after) throw new Fault("timeout", "the feed did not come", { cause: thrown })
  }
  return { items, next, hasMore: next < feedSeq }
}

/** For what has happened already to arrive. */
const patienceMs = 20_000

/** Pieces of one text that follow each other are one piece: a model that reads it needs no more. */
function add(items: Numbered<FeedItem>[], { seq, item }: Numbered<FeedItem>): number {
  const last = items.at(-1)?.item
  const isSame =
    item.type === "message.part.text-delta" &&
    last?.type === item.type &&
    last.messageId === item.messageId &&
    last.part === item.part
  if (isSame) items[items.length - 1] = { seq, item: { ...item, delta: last.delta + item.delta } }
  else items.push({ seq, item })
  return isSame ? item.delta.length : JSON.stringify(item).length
}
