import { Fault } from "@warren/base/fault.ts"
import type { Plane, Session } from "../plane.ts"
import { thereStates, type Sandbox, type Sandboxes } from "../sandboxes.ts"
import { metadataOf, sandboxLabel } from "../settings.ts"
import { isPaused } from "../sandboxes.ts"

const pageMax = 100
/** As many as one user may have. */
const allMax = 10_000

type Query = (name: string) => string | undefined

/** Every sandbox of whoever asks, the one made last first. */
export async function allSandboxes(plane: Plane, sandboxes: Sandboxes): Promise<Sandbox[]> {
  const found: Session[] = []
  for (let cursor: string | undefined, isFirst = true; (isFirst || cursor) && found.length < allMax; isFirst = false) {
    const asked = { label: sandboxLabel, state: [...thereStates], limit: 200, ...(cursor ? { cursor } : {}) }
    const page = await plane.call("session.list", asked)
    found.push(...page.items)
    cursor = page.nextCursor
  }
  return found.flatMap((session) => sandboxes.shown(session) ?? [])
}

/** Those a query asks for. */
export function selected(all: readonly Sandbox[], query: Query, states: readonly string[]): Sandbox[] {
  const wanted = metadataAsked(query("metadata"))
  const after = query("startedAfter")
  const template = query("template")
  const found = all.filter((sandbox) => {
    const metadata = metadataOf(sandbox.session)
    return (
      states.includes(isPaused(sandbox) ? "paused" : "running") &&
      wanted.every(([name, value]) => metadata[name] === value) &&
      (after === undefined || Date.parse(sandbox.session.createdAt) > Date.parse(after)) &&
      (template === undefined || sandbox.settings.template === template)
    )
  })
  return query("order") === "asc" ? found.toReversed() : found
}

export function statesAsked(query: Query): string[] {
  const given = query("state")
  if (given === undefined || given === "") return ["running", "paused"]
  const states = given.split(",")
  const wrong = states.find((state) => state !== "running" && state !== "paused")
  if (wrong !== undefined) throw new Fault("invalid", `there is no state ${wrong}`)
  return states
}

/** A page of a list, and the token for the next: how many are before it would change while sandboxes come and go. */
export function pageOf<T extends { readonly id: string }>(
  all: readonly T[],
  query: Query,
): { items: T[]; next?: string } {
  const limit = limitAsked(query("limit"))
  const token = query("nextToken")
  const last = token === undefined ? -1 : all.findIndex(({ id }) => id === token)
  const items = all.slice(last + 1, last + 1 + limit)
  const hasMore = last + 1 + items.length < all.length
  return { items, ...(hasMore && items.length > 0 ? { next: items.at(-1)?.id ?? "" } : {}) }
}

function limitAsked(given: string | undefined): number {
  if (given === undefined) return pageMax
  const limit = Number(given)
  if (!Number.isInteger(limit) || limit < 1 || limit > pageMax)
    throw new Fault("invalid", `limit must be 1 to ${pageMax}`)
  return limit
}

/** Encoded by clients once more than a query needs. */
function metadataAsked(given: string | undefined): [string, string][] {
  if (given === undefined) return []
  try {
    return [...new URLSearchParams(given)].map(([name, value]) => [decodeURIComponent(name), decodeURIComponent(value)])
  } catch (cause) {
    throw new Fault("invalid", "metadata is not encoded as a query", { cause })
  }
}
