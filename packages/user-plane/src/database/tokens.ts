import { Fault } from "@warren/base/fault.ts"

/** A piece of SQL that means something. */
export interface Token {
  readonly kind: "name" | "text" | "number" | "parameter" | "mark"
  /** Names and texts without their quotes; names that were not quoted in small letters, as SQL takes them. */
  readonly value: string
  readonly isQuoted: boolean
}

type Reader = readonly [pattern: RegExp, read: ((match: string) => Token) | undefined]

const quoted =
  (kind: "name" | "text", quote: string) =>
  (match: string): Token => ({
    kind,
    value: match.slice(1, -1).replaceAll(quote + quote, quote),
    isQuoted: true,
  })
const plain =
  (kind: Token["kind"]) =>
  (match: string): Token => ({ kind, value: match.toLowerCase(), isQuoted: false })

/** As SQLite's own reads them: the first pattern that fits. What fits none is no SQL. */
const readers: readonly Reader[] = [
  [/[ \t\n\f\r\v]+/y, undefined],
  [/--[^\n]*/y, undefined],
  [/\/\*[^]*?(?:\*\/|$)/y, undefined],
  [/'(?:[^']|'')*'/y, quoted("text", "'")],
  [/"(?:[^"]|"")*"/y, quoted("name", '"')],
  [/`(?:[^`]|``)*`/y, quoted("name", "`")],
  [/\[[^\]]*\]/y, quoted("name", "]")],
  [/\?\d*/y, plain("parameter")],
  [/[:@#$][\w$\u0080-\u{10ffff}]+/uy, plain("parameter")],
  [/[a-z_\u0080-\u{10ffff}][\w$\u0080-\u{10ffff}]*/iuy, plain("name")],
  [/(?:\d|\.\d)[\w.]*/y, plain("number")],
  [/[^\w'"`[]/y, plain("mark")],
]

export function tokensOf(sql: string): Token[] {
  const tokens: Token[] = []
  let at = 0
  while (at < sql.length) {
    const found = readerAt(sql, at)
    if (!found)
      throw new Fault("invalid", `the statement cannot be read from character ${at + 1} on`, {
        hint: "is a quote missing?",
      })
    if (found.token) tokens.push(found.token)
    at += found.length
  }
  return tokens
}

function readerAt(sql: string, at: number): { token: Token | undefined; length: number } | undefined {
  for (const [pattern, read] of readers) {
    pattern.lastIndex = at
    const match = pattern.exec(sql)?.[0]
    if (match !== undefined) return { token: read?.(match), length: match.length }
  }
  return undefined
}
