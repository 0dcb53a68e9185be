/** One defence less in the text of a file. */
export interface Cut {
  readonly line: number
  /** What was taken out. */
  readonly what: string
  readonly text: string
}

/** What counts as a defence in a file, and is taken out one at a time. */
export type Kind =
  /** `if (…) throw …`, on one line or two. */
  | "checks"
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
  entries: /^\s+(?:"[^"]+"|\["[^"]+", "[^"]+"\]),$/,
  headers:
    /^\s+(?:(?:if \(.*\) )?yield \["|(?:if \(.*\) )?c\.header\("|head\.push\("|"[a-z-]+": ".*",$|\["[a-z-]+", "[^"]+"\],$)/,
  rules: /^ {4}(?:iifname|oifname|meta|fib|ct|ip) .*$/,
  musts: /^\s+must\(.*\)$/,
}

export function cutsOf(text: string, kinds: readonly Kind[]): readonly Cut[] {
  const found = kinds.flatMap((kind) => {
    if (kind === "checks") return checkCuts(text)
    if (kind === "alternatives") return alternativeCuts(text)
    return lineCuts(text, linePatterns[kind])
  })
  return [...new Map(found.map((cut) => [cut.text, cut])).values()]
}

function lineCuts(text: string, pattern: RegExp | undefined): readonly Cut[] {
  const lines = text.split("\n")
  return lines.flatMap((line, at) => (pattern?.test(line) ? [without(lines, at, 1, line.trim())] : []))
}

function checkCuts(text: string): readonly Cut[] {
  const lines = text.split("\n")
  return lines.flatMap((line, at) => {
    const next = lines[at + 1] ?? ""
    if (/^\s*if \(.*\) throw .*[^({]$/.test(line)) return [without(lines, at, 1, line.trim())]
    if (/^\s*if \(.*\)$/.test(line) && /^\s*throw .*[^({]$/.test(next)) {
      return [without(lines, at, 2, `${line.trim()} ${next.trim()}`)]
    }
    if (/^\s*if \(.*\) \{$/.test(line) && /^\s*throw /.test(next)) return [never(lines, at)]
    return []
  })
}

/** A check with a block stays in place and is never met. */
function never(lines: readonly string[], at: number): Cut {
  const line = lines[at] ?? ""
  const text = lines.with(at, line.replace("if (", "if (false && (").replace(/\) \{$/, ")) {")).join("\n")
  return { line: at + 1, what: `${line.trim()} throw`, text }
}

function without(lines: readonly string[], at: number, count: number, what: string): Cut {
  return { line: at + 1, what, text: lines.toSpliced(at, count).join("\n") }
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
