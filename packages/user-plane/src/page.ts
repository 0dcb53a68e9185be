/** One page of a list: `found` was asked for with one more than the page holds, so that it shows whether more follows. */
export function pageOf<T>(
  found: readonly T[],
  limit: number,
  cursorOf: (last: T) => string,
): { items: T[]; nextCursor?: string } {
  const items = found.slice(0, limit)
  const last = items.at(-1)
  return found.length > limit && last !== undefined ? { items, nextCursor: cursorOf(last) } : { items }
}
