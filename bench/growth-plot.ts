import { megabytes, short } from "./figures.ts"
import type { Growth, GrowthRow } from "./growth.ts"
import { curve, label, picture, stroke } from "./svg.ts"

interface Line {
  readonly name: string
  readonly look: "p50" | "p99"
  valueOf(row: GrowthRow): number
}

interface Panel {
  readonly title: string
  readonly lines: readonly Line[]
}

/** What the machine has less is told apart from what else it does when so many share it. */
const tellingFrom = 100

type Timed = "create" | "exec" | "list" | "get"

const timed = (title: string, which: Timed): Panel => ({
  title,
  lines: [
    { name: "p99", look: "p99", valueOf: (row) => row[which].p99 },
    { name: "p50", look: "p50", valueOf: (row) => row[which].p50 },
  ],
})

const panels: readonly Panel[] = [
  timed("session.create, ms", "create"),
  timed("exec of true, ms", "exec"),
  timed("session.list, ms", "list"),
  timed("session.get, ms", "get"),
  {
    title: "memory of one sandbox, MB",
    lines: [
      {
        name: "machine",
        look: "p99",
        valueOf: (row) => (row.live < tellingFrom ? Number.NaN : megabytes(row.sandboxMachine)),
      },
      { name: "its own", look: "p50", valueOf: ({ sandboxOwn }) => megabytes(sandboxOwn) },
    ],
  },
  {
    title: "memory of the runner, MB",
    lines: [{ name: "resident", look: "p50", valueOf: ({ runnerResident }) => megabytes(runnerResident) }],
  },
  {
    title: "open files of the runner",
    lines: [{ name: "files", look: "p50", valueOf: ({ runnerFds }) => runnerFds }],
  },
]

const columns = 2
const panelPx = { width: 400, height: 200 }
const inset = { left: 56, right: 96, top: 34, bottom: 34 }

/** A panel for each figure over the number of sandboxes that live; the latter is logarithmic. */
export function growthPlot({ rows }: Growth): string {
  const height = Math.ceil(panels.length / columns) * panelPx.height + 10
  const parts = panels.flatMap((panel, index) => {
    const origin = [(index % columns) * panelPx.width, Math.floor(index / columns) * panelPx.height] as const
    return panelOf(panel, rows, origin)
  })
  return picture("How cost grows with the number of sandboxes", { width: columns * panelPx.width, height }, parts)
}

function panelOf(
  { title, lines }: Panel,
  rows: readonly GrowthRow[],
  [left, top]: readonly [number, number],
): string[] {
  const [x0, x1] = [left + inset.left, left + panelPx.width - inset.right]
  const [y0, y1] = [top + panelPx.height - inset.bottom, top + inset.top]
  const values = rows.flatMap((row) => lines.map((line) => line.valueOf(row)))
  const most = niceAbove(Math.max(...values.filter(Number.isFinite)))
  const span = Math.log10(rows.at(-1)?.live ?? 10) || 1
  const xOf = (live: number): number => x0 + ((x1 - x0) * Math.log10(live)) / span
  const yOf = (value: number): number => y0 + ((y1 - y0) * Math.max(0, value)) / most
  const marks = [0, most / 2, most].flatMap((value) => [
    stroke("grid", [x0, yOf(value)], [x1, yOf(value)]),
    label(short(value), [x0 - 6, yOf(value) + 4], { look: "faint", anchor: "end" }),
  ])
  return [
    label(title, [left + 12, top + 20], { look: "title" }),
    ...marks,
    stroke("axis", [x0, y0], [x1, y0]),
    ...rows.map(({ live }) => label(brief(live), [xOf(live), y0 + 16], { look: "faint", anchor: "middle" })),
    ...lines.map((line) => {
      const told = rows.filter((row) => Number.isFinite(line.valueOf(row)))
      return curve(
        line.look,
        told.map((row) => [xOf(row.live), yOf(line.valueOf(row))]),
      )
    }),
    ...namesOf(lines, rows.at(-1), [x1 + 8, yOf]),
  ]
}

/** At the right end of each line, and not on top of each other. */
function namesOf(
  lines: readonly Line[],
  last: GrowthRow | undefined,
  [x, yOf]: readonly [number, (value: number) => number],
): string[] {
  if (!last) return []
  let above = Number.NEGATIVE_INFINITY
  const told = lines.filter((line) => Number.isFinite(line.valueOf(last)))
  const sorted = told.toSorted((a, b) => yOf(a.valueOf(last)) - yOf(b.valueOf(last)))
  return sorted.map((line) => {
    const value = line.valueOf(last)
    const y = Math.max(yOf(value) + 4, above + 14)
    above = y
    return label(`${line.name} ${short(value)}`, [x, y], { look: `${line.look}-name` })
  })
}

function brief(live: number): string {
  return live >= 1_000 ? `${live / 1_000}k` : String(live)
}

/** The next of 1, 2, 5, 10 … */
function niceAbove(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-9)))
  return ([1, 2, 5, 10].find((step) => step * power >= value) ?? 10) * power
}
