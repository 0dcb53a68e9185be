/** More than this of a list nobody reads; `--limit` says otherwise. */
export const listMax = 1_000
const pageMax = 200

interface Page<T> {
  readonly items: readonly T[]
  readonly nextCursor?: string | undefined
}

/** Everything of a list that comes in pages, up to a limit. */
export async function allPages<T>(
  ask: (page: { limit: number; cursor?: string }) => Promise<Page<T>>,
  max = listMax,
): Promise<T[]> {
  const items: T[] = []
  let cursor: string | undefined
  do {
    const limit = Math.min(pageMax, max - items.length)
    const page = await ask({ limit, ...(cursor === undefined ? {} : { cursor }) })
    items.push(...page.items)
    cursor = page.nextCursor
  } while (cursor !== undefined && items.length < max)
  return items
}
