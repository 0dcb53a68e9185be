import { Store } from "./store.ts"

/** The feeds that are not connected right now. While there is one, the page says so. */
const lost = new Set<string>()

export const isReconnecting = new Store(false)

export function noteLost(feed: string): void {
  lost.add(feed)
  isReconnecting.set(true)
}

export function noteFound(feed: string): void {
  lost.delete(feed)
  isReconnecting.set(lost.size > 0)
}
