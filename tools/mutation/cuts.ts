import { shapes, syntaxCuts, treeOf, type Cut, type Shape } from "./syntax-cuts.ts"

/** What counts as a defence in a file, and is taken out one at a time. */
export type Kind =
  | Shape
  /** An element of a list that has a line of its own. */
  | "entries"
  /** A header that is set, yielded or kept in a record, on a line of its own. */
  | "headers"
  /** An alternative of a regular expression that begins a line of its own or is a constant. */
  | "alternatives"
  /** A rule of nftables. */
  | "rules"
  /** A line of `must(…)`. */
  | "musts"

const linePatterns: Readonly<Partial<Record<Kind, RegExp>>> = {
  entries: /^\s+(?:"[^"]+"|`[^`]+`|\["[^"]+", "[^"]+"\]|\[\/.*\/i?, "[^"]+"\]),$/,
  headers:
    /^\s+(?:(?:if \(.*\) )?yield \["|(?:if \(.*\) )?c\.header\("|head\.push\("|"[a-z-]+": ".*",$|\["[a-z-]+", "[^"]+"\],$)/,
  rules: /^ {4}(?:iifname|oifname|meta|fib|ct|ip|\$\{onlyOurs) .*$/,
  musts: /^\s+must\(.*\)$/,
}

export function cutsOf(text: string, kinds: readonly Kind[]): readonly Cut[] {
  const byShape = syntaxCuts(text, kinds.filter(isShape))
  const byLine = kinds.flatMap((kind) => {
    if (isShape(kind)) return []
    return kind === "alternatives" ? alternativeCuts(text) : lineCuts(text, linePatterns[kind])
  })
  const all = [...new Map([...byShape, ...byLine].map((cut) => [cut.text, cut])).values()]
  // What does not even load any more is missed by everybody, and proves nothing.
  return isCode(text) ? all.filter((cut) => isCode(cut.text)) : all
}

function isShape(kind: Kind): kind is Shape {
  return kind in shapes
}

function isCode(text: string): boolean {
  try {
    treeOf(text)
    return true
  } catch {
    return false
  }
}

function lineCuts(text: string, pattern: RegExp | undefined): readonly Cut[] {
  const lines = text.split("\n")
  return lines.flatMap((line, at) => (pattern?.test(line) ? [without(lines, at)] : []))
}

function without(lines: readonly string[], at: number): Cut {
  return { line: at + 1, what: (lines[at] ?? "").trim(), text: lines.toSpliced(at, 1).join("\n") }
}

/** `/^(?:a|b|c)$/`: without a, without b, without c. */
function alternativeCuts(text: string): readonly Cut[] {
  return [...text.matchAll(/\/\^\(\?:([^()]+)\)\$\//g)].flatMap((match) => {
    const all = (match[1] ?? "").split("|")
    const at = match.index
    const line = text.slice(0, at).split("\n").length
    return all.map((one) => {
      const fewer = `/^(?:${all.filter((other) => other !== one).join("|")})$/`
      return {
        line,
        what: `${one} of ${match[0]}`.slice(0, 120),
        text: text.slice(0, at) + fewer + text.slice(at + match[0].length),
      }
    })
  })
}
