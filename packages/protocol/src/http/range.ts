/** A part of something: `bytes=0-99`, `bytes=100-`, `bytes=-50`. */
export interface Part {
  readonly offset: number
  readonly limit: number
}

/**
 * The part a `Range` header asks for; undefined when it is to be ignored, as the standard wants for what is not understood
 * (several parts, another unit); "outside" when there is nothing there.
 */
export function partOf(range: string | undefined, size: number): Part | "outside" | undefined {
  const [whole, first, last] = /^bytes=(\d*)-(\d*)$/.exec(range ?? "") ?? []
  if (whole === undefined || (first === "" && last === "")) return undefined
  if (first === "") return cut(Math.max(size - Number(last), 0), size - 1, size)
  const end = last === "" ? size - 1 : Number(last)
  // Back to front is no range at all.
  if (last !== "" && end < Number(first)) return undefined
  return cut(Number(first), Math.min(end, size - 1), size)
}

function cut(first: number, last: number, size: number): Part | "outside" {
  return first >= size ? "outside" : { offset: first, limit: last - first + 1 }
}
