/** The word among `known` that was probably meant; undefined when none is near. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const [best] = known
    .map((name) => ({ name, distance: distance(word, name) }))
    .filter(({ name, distance }) => distance <= Math.max(1, Math.floor(Math.min(word.length, name.length) / 3)))
    .toSorted((a, b) => a.distance - b.distance)
  return best?.name ?? known.find((name) => word.length > 2 && name.startsWith(word))
}

/** How many letters differ: added, left out, replaced, or swapped with their neighbour. */
function distance(a: string, b: string): number {
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1]
      const isSwap = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const least = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + (isSame ? 0 : 1))
      next.push(isSwap && i > 1 && j > 1 ? Math.min(least, (before[j - 2] ?? 0) + 1) : least)
    }
    before = row
    row = next
  }
  return row[b.length] ?? 0
}
