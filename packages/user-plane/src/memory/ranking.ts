import type { Found } from "./memories.ts"

export interface Ranked {
  readonly n: number
  readonly snippet: string | undefined
  readonly score: number
  readonly matched: "text" | "vector" | "both"
}

/** Dampens the first places: being found by both ways is worth more than being first in one. */
const damping = 60

/** Two rankings as one, by places and not by scores: those of words and of vectors cannot be compared. */
export function fuse(words: readonly Found[], near: readonly Found[]): Ranked[] {
  const places = (found: readonly Found[]): Map<number, number> => new Map(found.map(({ n }, place) => [n, place]))
  const [byWords, byMeaning] = [places(words), places(near)]
  const snippets = new Map(words.map(({ n, snippet }) => [n, snippet]))
  const part = (place: number | undefined): number => (place === undefined ? 0 : 1 / (damping + place + 1))
  const all = [...new Set([...byWords.keys(), ...byMeaning.keys()])].map((n): Ranked => {
    const [word, meaning] = [byWords.get(n), byMeaning.get(n)]
    const matched = word === undefined ? "vector" : meaning === undefined ? "text" : "both"
    return { n, snippet: snippets.get(n), score: part(word) + part(meaning), matched }
  })
  return all.toSorted((a, b) => b.score - a.score)
}
