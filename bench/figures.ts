/** Three digits: more than the noise allows already. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return "–"
  return Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en-US") : String(Number(value.toPrecision(3)))
}

export function megabytes(bytes: number): number {
  return bytes / 1_000_000
}
