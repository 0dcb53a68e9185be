import type { FlagValues, Flags } from "./arguments/flag.ts"
import { flag } from "./arguments/flag.ts"
import { meaningOf, readFlags, takeApart } from "./arguments/parse.ts"
import type { Words, WordValues } from "./arguments/word.ts"
import type { Desk } from "./desk.ts"

/** What every verb understands. */
export const commonFlags = {
  json: flag.on("Answers as JSON on stdout, faults as `{error}` on stderr."),
  help: flag.on("What this verb does.", { short: "h" }),
  config: flag.text("FILE", "The `runner.toml` to go by.", { completes: "file" }),
  user: flag.text("NAME", "Which user of `runner.toml`; with one user it is that one."),
}
type Common = typeof commonFlags

interface Given<F extends Flags, W extends Words> {
  readonly flags: FlagValues<F & Common>
  readonly words: WordValues<W>
}

export const groups = [
  "Warren itself",
  "Programs",
  "Agents",
  "Sessions",
  "Files and data",
  "Images",
  "This tool",
] as const

interface Definition<F extends Flags, W extends Words> {
  /** One or two words: `run`, `images pull`. */
  readonly name: string
  readonly group: (typeof groups)[number]
  readonly doc: string
  readonly examples: readonly [string, ...string[]]
  readonly flags: F
  readonly words: W
  /** Its exit code; 0 when it gives none. */
  run(given: Given<F, W>, desk: Desk): Promise<number | void>
}

/** A verb as the table holds it: parsing, help, completion and the reference are made from it. */
export interface Verb extends Omit<Definition<Flags, Words>, "run"> {
  /** Takes apart what stands behind the verb. Nothing has happened until the result runs. */
  prepare(args: readonly string[]): Prepared
}

interface Prepared {
  readonly common: FlagValues<Common>
  run(desk: Desk): Promise<number | void>
}

export function verb<F extends Flags, W extends Words>(definition: Definition<F, W>): Verb {
  const flags = { ...definition.flags, ...commonFlags }
  return {
    ...definition,
    flags,
    prepare(args) {
      const syntax = { flags, words: definition.words }
      const line = takeApart(syntax, args)
      return {
        common: readFlags(commonFlags, line),
        run: async (desk) => definition.run(meaningOf(syntax, line), desk),
      }
    },
  }
}
