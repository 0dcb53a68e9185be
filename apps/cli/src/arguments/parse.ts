import { parseArgs } from "node:util"
import { Fault } from "@warren/base/fault.ts"
import type { Flag, FlagValues, Flags } from "./flag.ts"
import { nearest } from "./nearest.ts"
import { dealWords, type Words, type WordValues } from "./word.ts"

interface Parsed<F extends Flags, W extends Words> {
  readonly flags: FlagValues<F>
  readonly words: WordValues<W>
}

interface Syntax<F extends Flags, W extends Words> {
  readonly flags: F
  readonly words: W
}

/** The arguments behind a verb, taken apart: flags by their long names, and words. */
export interface Line {
  readonly written: ReadonlyMap<string, readonly string[]>
  readonly words: readonly string[]
}

/** What the arguments behind a verb mean. What they cannot mean is a fault that names the argument. */
export function meaningOf<F extends Flags, W extends Words>(syntax: Syntax<F, W>, line: Line): Parsed<F, W> {
  return { flags: readFlags(syntax.flags, line), words: dealWords(syntax.words, line.words) }
}

export function readFlags<F extends Flags>(flags: F, { written }: Line): FlagValues<F> {
  const values = Object.entries(flags).map(([key, each]) => {
    const name = dashed(key)
    return [key, each.read(written.get(name) ?? [], name)] as const
  })
  return Object.fromEntries(values) as FlagValues<F>
}

/** `isOnce` in the table is `--is-once` on the line. */
export function dashed(key: string): string {
  return `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

/** Takes the arguments behind a verb apart. A flag the verb does not have is a fault. */
export function takeApart({ flags, words }: Syntax<Flags, Words>, args: readonly string[]): Line {
  const table = new Map(Object.entries(flags).map(([key, each]) => [dashed(key), each]))
  const cut = commandStart(flags, words, args)
  const written = new Map<string, string[]>()
  const found: string[] = []
  for (const token of tokensOf(flags, args.slice(0, cut))) {
    if (token.kind === "positional") found.push(token.value)
    if (token.kind !== "option") continue
    const each = table.get(`--${token.name}`)
    if (!each) throw unknown(token.rawName, [...table.keys()])
    const texts = written.get(`--${token.name}`) ?? []
    written.set(`--${token.name}`, [...texts, valueOf(each, token)])
  }
  return { written, words: [...found, ...args.slice(cut)] }
}

interface OptionToken {
  readonly rawName: string
  readonly value: string | undefined
  readonly inlineValue: boolean | undefined
}

function valueOf(each: Flag<unknown>, { rawName, value, inlineValue }: OptionToken): string {
  if (each.value === undefined) {
    if (value !== undefined) throw new Fault("invalid", `${rawName} takes no value`)
    return ""
  }
  // A value that looks like a flag is more often a forgotten value; `--name=-x` says that it is meant.
  if (value === undefined || (!inlineValue && value.length > 1 && value.startsWith("-"))) {
    throw new Fault("invalid", `${rawName} needs a value: ${rawName} ${each.value}`)
  }
  return value
}

function unknown(rawName: string, known: readonly string[]): Fault {
  const near = nearest(rawName, known)
  return new Fault("invalid", `there is no ${rawName} here`, {
    hint: near === undefined ? "add --help to see what there is" : `did you mean ${near}?`,
  })
}

/** Where somebody else's command line begins: at the word after our own, unless `--` came before. */
function commandStart(flags: Flags, words: Words, args: readonly string[]): number {
  const kinds = Object.values(words)
  if (!kinds.some((each) => each.isCommand)) return args.length
  let ours = kinds.filter((each) => !each.isCommand).length
  for (const token of tokensOf(flags, args)) {
    if (token.kind === "option-terminator") return args.length
    if (token.kind === "positional" && ours-- === 0) return token.index
  }
  return args.length
}

function tokensOf(flags: Flags, args: readonly string[]) {
  const options = Object.entries(flags).map(([key, { value, short }]) => {
    const type = value === undefined ? ("boolean" as const) : ("string" as const)
    return [dashed(key).slice(2), { type, multiple: true, ...(short === undefined ? {} : { short }) }] as const
  })
  const given = { args: [...args], options: Object.fromEntries(options), strict: false, tokens: true } as const
  return parseArgs({ ...given, allowPositionals: true }).tokens
}
