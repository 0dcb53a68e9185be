import type { Result } from "./harness.ts"
import { bar, label, picture, stroke } from "./svg.ts"

const rowPx = 22
const labelPx = 210
const plotPx = 420
const figurePx = 150
/** From a hundredth of a goal to a hundred times. */
const decades = 2

/** How far from its goal: 1 is the goal, less is better, whichever way the metric counts; of several goals, the one that is farthest. */
export function distanceOf({ goal, ratio, p50 }: Result): number | undefined {
  const distances: number[] = []
  if (goal?.ratioMax !== undefined && ratio !== null) distances.push(ratio / goal.ratioMax)
  if (goal?.ratioMin !== undefined && ratio !== null) distances.push(goal.ratioMin / ratio)
  if (goal?.p50Max !== undefined) distances.push(p50 / goal.p50Max)
  return distances.length === 0 ? undefined : Math.max(...distances)
}

/** Every metric that has a goal as a bar: left of the line it is met. */
export function toPlot(results: readonly Result[]): string {
  const rows = results.flatMap((result) => {
    const distance = distanceOf(result)
    return distance === undefined ? [] : [{ name: result.name, distance }]
  })
  const height = (rows.length + 1) * rowPx
  const goalX = xOf(1)
  return picture("How far each metric is from its goal", { width: labelPx + plotPx + figurePx, height }, [
    ...rows.map(({ name, distance }, index) => barOf(name, distance, index * rowPx)),
    stroke("axis", [goalX, 0], [goalX, height - rowPx]),
    label("better", [xOf(0.01), height - 7], { look: "faint" }),
    label("goal", [goalX, height - 7], { anchor: "middle" }),
    label("worse", [xOf(100), height - 7], { look: "faint", anchor: "end" }),
  ])
}

function barOf(name: string, distance: number, y: number): string {
  const [from, to] = [xOf(1), xOf(distance)]
  const [x, width] = [Math.min(from, to), Math.abs(to - from)]
  return [
    label(name, [labelPx - 8, y + 15], { anchor: "end" }),
    bar(distance <= 1 ? "met" : "missed", [x, y + 4], { width, height: rowPx - 8 }),
    label(`${distance.toFixed(2)} × the goal`, [labelPx + plotPx + 8, y + 15]),
  ].join("\n")
}

function xOf(distance: number): number {
  const share = (Math.log10(distance) + decades) / (2 * decades)
  return labelPx + plotPx * Math.min(1, Math.max(0, share))
}
