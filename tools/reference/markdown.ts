/** Says at the top of a generated page that it is one, and from what. */
export function page(title: string, source: string, sections: readonly string[]): string {
  const note = `<!-- Made by \`npm run generate\` from ${source}. Change that, not this. -->`
  return `${[`# ${title}`, note, ...sections].filter((section) => section !== "").join("\n\n")}\n`
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(" | ")} |`
  return [line(head), `|${head.map(() => "---").join("|")}|`, ...rows.map(line)].join("\n")
}

const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("\n", " ")

export const code = (text: string): string => `\`${text}\``
