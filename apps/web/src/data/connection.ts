import type { Fault } from "@warren/base/fault.ts"
import { queries } from "./query.ts"
import { Store } from "./store.ts"

/** The feeds that are not connected right now, and what is the matter. While there is one, the page says so. */
const lost = new Map<string, Fault>()

/** What is the matter, as it was last told; undefined while everything is connected. */
export const trouble = new Store<Fault | undefined>(undefined)

export function noteLost(feed: string, fault: Fault): void {
  lost.set(feed, fault)
  trouble.set(fault)
}

export function noteFound(feed: string): void {
  if (!lost.delete(feed)) return
  trouble.set([...lost.values()].at(-1))
  // What could not be read meanwhile is read now: nobody has to ask for it again.
  if (lost.size === 0) void queries.invalidateQueries({ predicate: ({ state }) => state.status === "error" })
}

/** Warren itself has answered, so what is missing is behind it: the user's runner. */
export function isOfRunner(fault: Fault | undefined): fault is Fault {
  return fault?.requestId !== undefined
}
