import type { Output } from "@warren/sdk/routes.ts"

export type Snapshot = Output<"GET /v1/snapshots">["items"][number]

export interface Branch {
  readonly snapshot: Snapshot
  readonly depth: number
}

/** Snapshots below those they came from, each before what follows from it; the oldest first. */
export function branches(snapshots: readonly Snapshot[]): readonly Branch[] {
  const sorted = snapshots.toSorted((a, b) => (a.createdAt < b.createdAt ? -1 : 1))
  const ids = new Set(sorted.map(({ id }) => id))
  const originOf = ({ parent }: Snapshot): string => (parent !== undefined && ids.has(parent) ? parent : "")
  const from = (origin: string, depth: number): Branch[] =>
    sorted
      .filter((one) => originOf(one) === origin)
      .flatMap((snapshot) => [{ snapshot, depth }, ...from(snapshot.id, depth + 1)])
  return from("", 0)
}
