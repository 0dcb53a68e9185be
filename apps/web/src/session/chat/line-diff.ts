export interface DiffLine {
  readonly kind: "same" | "gone" | "new" | "cut"
  readonly text: string
}

/** Comparing takes the product of the lengths: beyond this everything is taken for changed. */
const comparedMax = 400 * 400
/** Lines around a change that are shown with it. */
const around = 2

/** The lines of two texts, matched up, with what stays the same far from a change left out. */
export function lineDiff(before: string, after: string): DiffLine[] {
  const [a, b] = [linesOf(before), linesOf(after)]
  return folded(a.length * b.length > comparedMax ? all(a, b) : matched(a, b))
}

/** A diff that git or an agent has written. */
export function unifiedDiff(text: string): DiffLine[] | undefined {
  if (!/^@@ .* @@/m.test(text)) return undefined
  return text.split("\n").flatMap((line): DiffLine[] => {
    if (/^(diff |index |--- |\+\+\+ |\\ )/.test(line)) return []
    if (line.startsWith("@@")) return [{ kind: "cut", text: line.replace(/^@@[^@]*@@ ?/, "") }]
    if (line.startsWith("+")) return [{ kind: "new", text: line.slice(1) }]
    if (line.startsWith("-")) return [{ kind: "gone", text: line.slice(1) }]
    return [{ kind: "same", text: line.slice(1) }]
  })
}

export function countOf(lines: readonly DiffLine[]): { readonly added: number; readonly gone: number } {
  const count = (kind: DiffLine["kind"]): number => lines.filter((line) => line.kind === kind).length
  return { added: count("new"), gone: count("gone") }
}

function linesOf(text: string): string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n")
}

function all(a: readonly string[], b: readonly string[]): DiffLine[] {
  return [...a.map((text) => ({ kind: "gone", text }) as const), ...b.map((text) => ({ kind: "new", text }) as const)]
}

/** The longest common lines, by the table everybody learns. */
function matched(a: readonly string[], b: readonly string[]): DiffLine[] {
  const width = b.length + 1
  const table = new Uint16Array((a.length + 1) * width)
  const at = (i: number, j: number): number => table[i * width + j] ?? 0
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--)
      table[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
  }
  const lines: DiffLine[] = []
  let [i, j] = [0, 0]
  while (i < a.length || j < b.length) {
    if (i < a.length && a[i] === b[j]) {
      lines.push({ kind: "same", text: a[i++] ?? "" })
      j++
    } else if (i < a.length && (j >= b.length || at(i + 1, j) >= at(i, j + 1)))
      lines.push({ kind: "gone", text: a[i++] ?? "" })
    else lines.push({ kind: "new", text: b[j++] ?? "" })
  }
  return lines
}

function folded(lines: readonly DiffLine[]): DiffLine[] {
  const isNear = (index: number): boolean =>
    lines.slice(Math.max(0, index - around), index + around + 1).some(({ kind }) => kind !== "same")
  const shown: DiffLine[] = []
  for (const [index, line] of lines.entries()) {
    if (isNear(index)) shown.push(line)
    else if (shown.at(-1)?.kind !== "cut") shown.push({ kind: "cut", text: "" })
  }
  return shown
}
