import { mkdir, writeFile } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { besidePlot } from "./beside-plot.ts"
import { promised } from "./goals.ts"
import { growthPlot } from "./growth-plot.ts"
import type { Result } from "./harness.ts"
import { toPlot } from "./plot.ts"
import { besideTable, describe, goalOf, growthTable, metricTable, resultsOf, verdictOf } from "./report.ts"
import type { Outcome, Report } from "./report.ts"
import { markdownTable } from "./table.ts"

interface Drawn {
  readonly text: string
  /** Pictures beside the page, by what is added to its name. */
  readonly plots: ReadonlyMap<string, string>
}

/** The run as a page with its plots beside it. `command` is how to make it again. */
export async function writePage(file: string, command: string, report: Report): Promise<void> {
  const name = basename(file, ".md")
  const { text, plots } = draw(name, command, report)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, text)
  for (const [suffix, plot] of plots) await writeFile(join(dirname(file), `${name}${suffix}.svg`), plot)
}

export function draw(name: string, command: string, report: Report): Drawn {
  const { machine, outcomes, beside, growth } = report
  const results = resultsOf(outcomes)
  const plots = new Map([["", toPlot(results)]])
  const parts = [
    "# Benchmarks",
    "",
    `Made by \`npm run bench -- ${command}\`; nothing here is written by hand.`,
    "",
    describe(machine),
    "",
    ...howToRead,
    ...goalPart(outcomes),
    `![How far each metric is from its goal](${name}.svg)`,
    "",
  ]
  if (beside) {
    plots.set("-beside", besidePlot(beside))
    parts.push(...besidePart(name, beside))
  }
  if (growth) {
    plots.set("-growth", growthPlot(growth))
    parts.push(...growthPart(name, growth))
  }
  parts.push("## Every metric", "", markdownTable(metricTable(results)), "", ...unmeasured(outcomes))
  return { text: `${parts.join("\n").trimEnd()}\n`, plots }
}

const howToRead = [
  "## How to read this",
  "",
  "- A **ratio** is ours divided by a baseline's, both at the median and both measured in the same run in turns: on another machine the milliseconds differ, the ratios hardly do. What each baseline is: [What is fast, and how we know](../internals/performance.md).",
  "- **p50** is the median, **p99** the bad end: 99 of 100 were better. With an n below 100 it is the worst one. `↑`: more is better, and the percentiles count from the best sample down.",
  "- **load** is the machine's load average when the run began. On a machine that does something else, too, times are mostly waiting.",
  "- A goal that is **MISSED** is missed in this run; it stays on the page.",
  "- What a metric measures is said at the top of its file in `bench/metrics/`; how to run one: [Measuring](../../bench/README.md).",
  "",
]

/** What was promised, whether it was kept, and what nobody looked at. */
function goalPart(outcomes: readonly Outcome[]): string[] {
  const byName = new Map(outcomes.map((outcome) => [nameOf(outcome), outcome]))
  const rows = promised.flatMap(({ what, metrics }) =>
    metrics.map((metric, index) => [index === 0 ? what : "", `\`${metric}\``, ...shown(byName.get(metric))]),
  )
  const withGoal = resultsOf(outcomes).filter(({ met }) => met !== undefined)
  const missed = withGoal.filter(({ met }) => met === false)
  return [
    "## Goals",
    "",
    `Of ${withGoal.length} metrics with a goal that were measured, ${withGoal.length - missed.length} met it and ${missed.length} missed it${missed.length > 0 ? `: ${missed.map(({ name }) => `\`${name}\``).join(", ")}` : ""}.`,
    "What the architecture promises:",
    "",
    markdownTable({ head: ["promised", "metric", "measured", "goal", ""], rows, words: new Set([0, 1, 2, 3, 4]) }),
    "",
    "All metrics with a goal, the goal as the line in the middle:",
    "",
  ]
}

function nameOf(outcome: Outcome): string {
  return outcome.kind === "measured" ? outcome.result.name : outcome.name
}

function shown(outcome: Outcome | undefined): string[] {
  if (!outcome) return ["", "", "not measured"]
  if (outcome.kind !== "measured") return ["", "", `${outcome.kind}: ${outcome.why}`]
  const { result } = outcome
  const verdict = verdictOf(result)
  return [measured(result), goalOf(result), result.met === false ? `**${verdict}**` : verdict]
}

function measured({ ratio, p50, unit, baseline, n }: Result): string {
  const sample = n === 1 ? "" : `, n = ${n}`
  if (ratio === null || !baseline) return `${p50} ${unit}${sample}`
  return `${ratio.toFixed(2)} × ${baseline.name} (${p50} to ${baseline.p50} ${unit}${sample})`
}

function besidePart(name: string, beside: NonNullable<Report["beside"]>): string[] {
  return [
    "## Beside others",
    "",
    "The same root and limits for all and no network unless it is said, in the same run and in turns. **Cold**: from nothing over the end of `true` to nothing. **exec**: `true` in one that runs. **memory**: of one that sleeps, its own pages and what the kernel counts for it; **of the machine's**: how much less memory the machine has available for each. n: of cold, of exec, of those that slept at once.",
    "",
    `![Warren beside others](${name}-beside.svg)`,
    "",
    markdownTable(besideTable(beside)),
    "",
    ...beside.rows.map((row) => `- **${row.name}**: ${row.how}.`),
    ...beside.absent.map(({ name: who, why }) => `- **${who}**: ${why}.`),
    "",
    "Ours is timed in Node, from the call to the resolved promise; crun, runc and bwrap in C by the process that starts them, which is in their favour.",
    "",
  ]
}

function growthPart(name: string, growth: NonNullable<Report["growth"]>): string[] {
  const nOf = (which: "create" | "exec" | "list"): string => {
    const counts = growth.rows.map((row) => row[which].n)
    const [least, most] = [Math.min(...counts), Math.max(...counts)]
    return least === most ? `n = ${most}` : `n = ${least} to ${most}`
  }
  return [
    "## How cost grows",
    "",
    `One runner without a pool in which more and more sessions live, each with a sandbox and its way out as anybody gets it, in which only init sleeps; asked over its socket. **create**: a cold \`session.create\` (${nOf("create")}). **exec**: \`true\` in one of them, by lot (${nOf("exec")}). **list**: a page of 50, **get**: one of them (${nOf("list")} each). **sandbox**: own pages and what the kernel counts for one; **of the machine's**: how much less memory there is for each, runner included. With few of them the last two are noise.`,
    "",
    `![How cost grows with the number of sandboxes](${name}-growth.svg)`,
    "",
    markdownTable(growthTable(growth)),
    "",
    ...(growth.stopped === undefined ? [] : [`It stopped ${growth.stopped}`, ""]),
  ]
}

function unmeasured(outcomes: readonly Outcome[]): string[] {
  const others = outcomes.flatMap((one) =>
    one.kind === "measured" ? [] : [`- \`${one.name}\` was ${one.kind}: ${one.why}`],
  )
  return others.length > 0 ? [...others, ""] : []
}
