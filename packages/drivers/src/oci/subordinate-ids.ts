/** Ids of this machine that an ordinary user may give to their sandboxes, as `/etc/subuid` and `/etc/subgid` grant them. */
export interface SubordinateIds {
  readonly uid: number
  readonly gid: number
  readonly count: number
}

export interface Person {
  readonly name: string
  readonly uid: number
}

/** The largest range of each file, as many of both as there are of the fewer; undefined when one of them grants nothing. */
export function subordinateIds(subuid: string, subgid: string, person: Person): SubordinateIds | undefined {
  const uids = largest(subuid, person)
  const gids = largest(subgid, person)
  if (!uids || !gids) return undefined
  return { uid: uids.first, gid: gids.first, count: Math.min(uids.count, gids.count) }
}

interface Range {
  readonly first: number
  readonly count: number
}

/** Lines are `user:first:count`, the user by name or by number. */
function largest(text: string, { name, uid }: Person): Range | undefined {
  const ranges = text
    .split("\n")
    .map((line) => line.trim().split(":"))
    .filter(([owner, , count]) => (owner === name || owner === String(uid)) && Number(count) > 0)
    .map(([, first, count]) => ({ first: Number(first), count: Number(count) }))
    .filter(({ first, count }) => Number.isSafeInteger(first) && Number.isSafeInteger(count))
  return ranges.toSorted((a, b) => b.count - a.count)[0]
}
