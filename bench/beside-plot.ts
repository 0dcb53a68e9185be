import type { Beside, BesideRow } from "./beside.ts"
import { megabytes, short } from "./figures.ts"
import { bar, label, picture } from "./svg.ts"

const rowPx = 22
const titlePx = 34
const labelPx = 170
const plotPx = 440
const figurePx = 190
const width = labelPx + plotPx + figurePx

interface Panel {
  readonly title: string
  valueOf(row: BesideRow): number
  figureOf(row: BesideRow): string
}

const panels: readonly Panel[] = [
  {
    title: "From nothing over true to nothing, ms at p50 (p99)",
    valueOf: ({ cycle }) => cycle.p50,
    figureOf: ({ cycle }) => `${short(cycle.p50)} (${short(cycle.p99)})`,
  },
  {
    title: "true in one that runs, ms at p50 (p99)",
    valueOf: ({ exec }) => exec.p50,
    figureOf: ({ exec }) => `${short(exec.p50)} (${short(exec.p99)})`,
  },
  {
    title: "Memory of one that sleeps, MB",
    valueOf: ({ memory }) => megabytes(memory.own),
    figureOf: ({ memory }) => short(megabytes(memory.own)),
  },
]

/** Everybody as a bar in each panel; the scale is logarithmic, or ours could not be seen beside the longest. */
export function besidePlot({ rows }: Beside): string {
  const panelPx = titlePx + rows.length * rowPx
  const parts = panels.flatMap((panel, index) => panelOf(panel, rows, index * panelPx))
  return picture("Warren beside others", { width, height: panels.length * panelPx + 10 }, parts)
}

function panelOf({ title, valueOf, figureOf }: Panel, rows: readonly BesideRow[], top: number): string[] {
  const values = rows.map(valueOf)
  const least = Math.min(...values) / 2
  const span = Math.log(Math.max(...values) / least)
  const lengthOf = (value: number): number => (plotPx * Math.log(value / least)) / span
  return [
    label(`${title}, logarithmic`, [8, top + 22], { look: "title" }),
    ...rows.flatMap((row, index) => {
      const y = top + titlePx + index * rowPx
      const length = lengthOf(valueOf(row))
      const look = row.name.startsWith("warren") ? "ours" : "theirs"
      return [
        label(row.name, [labelPx - 8, y + 15], { anchor: "end" }),
        bar(look, [labelPx, y + 3], { width: length, height: rowPx - 6 }),
        label(figureOf(row), [labelPx + length + 6, y + 15]),
      ]
    }),
  ]
}
