/** Cells below heads. Figures stand on the right. */
export interface Table {
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
  /** Columns that hold words. */
  readonly words: ReadonlySet<number>
}

/** For a terminal. */
export function plainTable({ head, rows, words }: Table): string {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map((cells) => cells[column]?.length ?? 0)))
  return all
    .map((cells) =>
      cells
        .map((cell, i) => (words.has(i) ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
        .join("  ")
        .trimEnd(),
    )
    .join("\n")
}

/** For a page. */
export function markdownTable({ head, rows, words }: Table): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`
  return [line(head), line(head.map((_, i) => (words.has(i) ? "---" : "--:"))), ...rows.map(line)].join("\n")
}
