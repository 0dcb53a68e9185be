/** Colours for light and dark pages: whoever looks chooses. */
const style = `<style>
text { font: 12px system-ui, sans-serif; fill: #1c2024 }
.faint { fill: #62686e }
.title { font-weight: 600 }
.back { fill: #fff }
.axis { stroke: #8a9096; stroke-width: 1 }
.grid { stroke: #e3e6e8; stroke-width: 1 }
.met { fill: #2a8a5a }
.missed { fill: #c04040 }
.ours { fill: #2a6ab8 }
.theirs { fill: #9aa2aa }
.line { fill: none; stroke-width: 2 }
.p50 { stroke: #2a6ab8; fill: #2a6ab8 }
.p99 { stroke: #c0762a; fill: #c0762a }
.p50-name { fill: #2a6ab8 }
.p99-name { fill: #a8621c }
@media (prefers-color-scheme: dark) {
text { fill: #e6e9ec }
.faint { fill: #9aa2aa }
.back { fill: #15181b }
.axis { stroke: #767d84 }
.grid { stroke: #2a2f34 }
.met { fill: #4cb883 }
.missed { fill: #e06c6c }
.ours { fill: #5b9ae6 }
.theirs { fill: #5d656d }
.p50 { stroke: #5b9ae6; fill: #5b9ae6 }
.p99 { stroke: #e0a05c; fill: #e0a05c }
.p50-name { fill: #7fb2f0 }
.p99-name { fill: #e0a05c }
}
.line { fill: none }
</style>`

interface Size {
  readonly width: number
  readonly height: number
}

/** A whole picture. `title` is for those who cannot see it. */
export function picture(title: string, { width, height }: Size, parts: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    style,
    `<rect class="back" width="100%" height="100%"/>`,
    ...parts,
    "</svg>\n",
  ].join("\n")
}

type Place = readonly [x: number, y: number]

interface Look {
  readonly look?: string
  readonly anchor?: "start" | "middle" | "end"
}

export function label(text: string, [x, y]: Place, { look = "", anchor = "start" }: Look = {}): string {
  return `<text class="${look}" x="${round(x)}" y="${round(y)}" text-anchor="${anchor}">${escaped(text)}</text>`
}

export function bar(look: string, [x, y]: Place, { width, height }: Size): string {
  return `<rect class="${look}" x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" rx="2"/>`
}

export function stroke(look: string, [x1, y1]: Place, [x2, y2]: Place): string {
  return `<line class="${look}" x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${round(y2)}"/>`
}

/** A line through points, with a dot on each. */
export function curve(look: string, points: readonly Place[]): string {
  const path = points.map(([x, y], index) => `${index === 0 ? "M" : "L"}${round(x)} ${round(y)}`).join("")
  const dots = points.map(([x, y]) => `<circle class="${look}" cx="${round(x)}" cy="${round(y)}" r="3"/>`)
  return [`<path class="${look} line" d="${path}"/>`, ...dots].join("\n")
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
}

function round(value: number): string {
  return String(Number(value.toFixed(1)))
}
