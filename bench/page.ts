import { mkdir, writeFile } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import type { Machine } from "./machine.ts"
import { toPlot } from "./plot.ts"
import { describe, head, rowOf, type Outcome } from "./report.ts"

/** The run as a page with a plot beside it. */
export async function writePage(file: string, machine: Machine, outcomes: readonly Outcome[]): Promise<void> {
  const results = outcomes.flatMap((outcome) => (outcome.kind === "measured" ? [outcome.result] : []))
  const plot = `${basename(file, ".md")}.svg`
  const others = outcomes.flatMap((one) =>
    one.kind === "measured" ? [] : [`- \`${one.name}\` was ${one.kind}: ${one.why}`],
  )
  const page = [
    "# Benchmarks",
    "",
    `Made by \`npm run bench -- --page ${file}\`. What each metric measures is said at the top of its file in \`bench/metrics/\`; ratios are to a baseline of the same run.`,
    "`↑`: more is better, and the percentiles count from the best sample down.",
    "",
    describe(machine),
    "",
    `![How far each metric is from its goal](${plot})`,
    "",
    tableRow(head),
    tableRow(head.map(() => "---")),
    ...results.map((result) => tableRow(rowOf(result))),
    ...(others.length > 0 ? ["", ...others] : []),
    "",
  ]
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, page.join("\n"))
  await writeFile(join(dirname(file), plot), toPlot(results))
}

function tableRow(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`
}
