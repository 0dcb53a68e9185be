import { Fault } from "@warren/base/fault.ts"
import type { Completes } from "./flag.ts"

/** What stands behind a verb without a dash: one word, several, or a whole command line. */
export interface Word<T> {
  readonly label: string
  readonly doc: string
  readonly min: number
  readonly max: number
  /** Everything from here on belongs to somebody else's program: no dash in it is ours. */
  readonly isCommand?: boolean
  readonly completes?: Completes
  read(texts: readonly string[]): T
}

export type Words = Readonly<Record<string, Word<unknown>>>
export type WordValues<W extends Words> = { readonly [K in keyof W]: W[K] extends Word<infer T> ? T : never }

interface WordOptions {
  readonly completes?: Completes
}

const first = (texts: readonly string[]): string => texts[0] ?? ""

export const word = {
  one: (label: string, doc: string, options: WordOptions = {}): Word<string> => ({
    label,
    doc,
    min: 1,
    max: 1,
    ...options,
    read: first,
  }),
  optional: (label: string, doc: string, options: WordOptions = {}): Word<string | undefined> => ({
    label,
    doc,
    min: 0,
    max: 1,
    ...options,
    read: (texts) => texts[0],
  }),
  some: (label: string, doc: string, options: WordOptions = {}): Word<readonly string[]> => ({
    label,
    doc,
    min: 1,
    max: Number.POSITIVE_INFINITY,
    ...options,
    read: (texts) => texts,
  }),
  command: (doc: string, options: { readonly isOptional?: boolean } = {}): Word<readonly string[]> => ({
    label: "COMMAND",
    doc,
    min: options.isOptional ? 0 : 1,
    max: Number.POSITIVE_INFINITY,
    isCommand: true,
    read: (texts) => texts,
  }),
}

/** Of those that are missing, the first, as somebody counts who writes them one after the other. */
function checkAllThere(words: readonly Word<unknown>[], count: number): void {
  let needed = 0
  for (const { label, doc, min } of words) {
    needed += min
    if (needed > count) throw new Fault("invalid", `${label} is missing: ${doc}`)
  }
}

/** Deals words out in the order of the table; each takes what it may and leaves what those after it need. */
export function dealWords<W extends Words>(words: W, texts: readonly string[]): WordValues<W> {
  const rest = [...texts]
  const entries = Object.entries(words)
  checkAllThere(Object.values(words), texts.length)
  const values = entries.map(([key, each], index) => {
    const needed = entries.slice(index + 1).reduce((sum, [, later]) => sum + later.min, 0)
    const taken = rest.splice(0, Math.max(0, Math.min(each.max, rest.length - needed)))
    return [key, each.read(taken)] as const
  })
  if (rest.length > 0) throw new Fault("invalid", `"${rest[0]}" is one word too many`)
  return Object.fromEntries(values) as WordValues<W>
}
