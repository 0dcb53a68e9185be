import type { Result } from "./harness.ts"

const rowPx = 22
const labelPx = 210
const plotPx = 420
const figurePx = 150
/** From a hundredth of a goal to a hundred times. */
const decades = 2

/** How far from its goal: 1 is the goal, less is better, whichever way the metric counts. */
export function distanceOf({ goal, ratio, p50 }: Result): number | undefined {
  if (goal?.ratioMax !== undefined && ratio !== null) return ratio / goal.ratioMax
  if (goal?.ratioMin !== undefined && ratio !== null) return goal.ratioMin / ratio
  return goal?.p50Max === undefined ? undefined : p50 / goal.p50Max
}

/** Every metric that has a goal as a bar: left of the line it is met. */
export function toPlot(results: readonly Result[]): string {
  const rows = results.flatMap((result) => {
    const distance = distanceOf(result)
    return distance === undefined ? [] : [{ name: result.name, distance }]
  })
  const height = (rows.length + 1) * rowPx
  const goalX = xOf(1)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${labelPx + plotPx + figurePx}" height="${height}" font-family="sans-serif" font-size="12">`,
    `<rect width="100%" height="100%" fill="white"/>`,
    ...rows.map(({ name, distance }, index) => barOf(name, distance, index * rowPx)),
    `<line x1="${goalX}" x2="${goalX}" y1="0" y2="${height - rowPx}" stroke="#333"/>`,
    `<text x="${goalX}" y="${height - 7}" text-anchor="middle" fill="#333">goal</text>`,
    "</svg>\n",
  ].join("\n")
}

function barOf(name: string, distance: number, y: number): string {
  const [from, to] = [xOf(1), xOf(distance)]
  const [x, width] = [Math.min(from, to), Math.abs(to - from)]
  const colour = distance <= 1 ? "#2a8a5a" : "#c04040"
  const text = `y="${y + 15}" fill="#111"`
  return [
    `<text x="${labelPx - 8}" ${text} text-anchor="end">${name}</text>`,
    `<rect x="${x.toFixed(1)}" y="${y + 4}" width="${width.toFixed(1)}" height="${rowPx - 8}" fill="${colour}"/>`,
    `<text x="${labelPx + plotPx + 8}" ${text}>${distance.toFixed(2)} × the goal</text>`,
  ].join("\n")
}

function xOf(distance: number): number {
  const share = (Math.log10(distance) + decades) / (2 * decades)
  return labelPx + plotPx * Math.min(1, Math.max(0, share))
}
