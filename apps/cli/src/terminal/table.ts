/** Columns under their names, as wide as what is in them. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, ...rows].map((row) => row.map(plain))
  const widths = head.map((_, column) => Math.max(...lines.map((line) => widthOf(line[column] ?? ""))))
  return lines.map((line) => line.map((cell, column) => pad(cell, widths[column] ?? 0)).join("  ").trimEnd()).join("\n")
}

/** Names beside their values. */
export function record(entries: Readonly<Record<string, string | undefined>>): string {
  const shown = Object.entries(entries).filter((entry): entry is [string, string] => entry[1] !== undefined)
  const width = Math.max(0, ...shown.map(([name]) => name.length))
  return shown.map(([name, value]) => `${`${name}:`.padEnd(width + 2)}${plain(value)}`).join("\n")
}

/** What somebody else wrote must not steer the terminal; the colours are ours. */
const plain = (text: string): string =>
  // eslint-disable-next-line no-control-regex
  text.replaceAll(/\u001b(?!\[\d*m)/g, "␛").replaceAll(/[\u0000-\u001a\u001c-\u001f\u007f-\u009f]/g, " ")

const pad = (text: string, width: number): string => text + " ".repeat(Math.max(0, width - widthOf(text)))
// eslint-disable-next-line no-control-regex
const widthOf = (text: string): number => [...text.replaceAll(/\u001b\[\d*m/g, "")].length
