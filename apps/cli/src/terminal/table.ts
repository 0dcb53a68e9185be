import { plain, withoutColours } from "./plain.ts"

/** Columns under their names, as wide as what is in them. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, ...rows].map((row) => row.map(plain))
  const widths = head.map((_, column) => Math.max(...lines.map((line) => widthOf(line[column] ?? ""))))
  return lines
    .map((line) =>
      line
        .map((cell, column) => pad(cell, widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n")
}

/** Names beside their values. */
export function record(entries: Readonly<Record<string, string | undefined>>): string {
  const shown = Object.entries(entries).filter((entry): entry is [string, string] => entry[1] !== undefined)
  const width = Math.max(0, ...shown.map(([name]) => name.length))
  return shown.map(([name, value]) => `${`${name}:`.padEnd(width + 2)}${plain(value)}`).join("\n")
}

const pad = (text: string, width: number): string => text + " ".repeat(Math.max(0, width - widthOf(text)))
const widthOf = (text: string): number => withoutColours(text).replaceAll(/[\u{10000}-\u{10ffff}]/gu, "_").length
