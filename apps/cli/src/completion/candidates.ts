import { dashed } from "../arguments/parse.ts"
import type { Completes, Flags } from "../arguments/flag.ts"
import type { Verb } from "../verb.ts"

/** What may come next on a line, as a shell is told: words to choose from, or that it is a file here. */
export interface Candidates {
  readonly words: readonly string[]
  readonly areFiles?: boolean
}

export type Names = (kind: Exclude<Completes, "file">) => Promise<readonly string[]>

/** What may stand where the cursor is: `line` is what stands before, `word` what has been typed of this one. */
export async function candidates(
  verbs: readonly Verb[],
  line: readonly string[],
  word: string,
  names: Names,
): Promise<Candidates> {
  const shown = verbs.filter(({ name }) => !name.startsWith("_"))
  const verb = verbOf(shown, line)
  if (!verb) return { words: starting(nextWords(shown, line), word) }
  const behind = line.slice(verb.name.split(" ").length)
  // Somebody else's command line is somebody else's to complete.
  if (behind.includes("--")) return { words: [], areFiles: true }
  const last = behind.at(-1)
  const open = last === undefined ? undefined : flagNamed(verb.flags, last)
  if (open?.value !== undefined) return offered(open, word, names)
  if (word.startsWith("-")) return { words: starting(Object.keys(verb.flags).map(dashed), word) }
  return offered(wordAt(verb, behind), word, names)
}

function verbOf(verbs: readonly Verb[], line: readonly string[]): Verb | undefined {
  const [first = "", second = ""] = line
  return verbs.find(({ name }) => name === `${first} ${second}`) ?? verbs.find(({ name }) => name === first)
}

/** The first words of verbs, or the second ones of a family. */
function nextWords(verbs: readonly Verb[], line: readonly string[]): string[] {
  const depth = line.length
  const family = verbs.filter(({ name }) => depth === 0 || name.startsWith(`${line[0]} `))
  return depth > 1 ? [] : [...new Set(family.map(({ name }) => name.split(" ")[depth] ?? ""))]
}

function flagNamed(flags: Flags, text: string) {
  const found = Object.entries(flags).find(([key, { short }]) => dashed(key) === text || `-${short}` === text)
  return found?.[1]
}

/** The word the cursor is at: those before it are counted without flags and their values. */
function wordAt({ words, flags }: Verb, behind: readonly string[]) {
  let count = 0
  for (let at = 0; at < behind.length; at++) {
    const text = behind[at] ?? ""
    if (!text.startsWith("-")) count++
    else if (!text.includes("=") && flagNamed(flags, text)?.value !== undefined) at++
  }
  const kinds = Object.values(words)
  const last = kinds.at(-1)
  return kinds[count] ?? (last && last.max > 1 ? last : undefined)
}

interface Offering {
  readonly completes?: Completes
  readonly choices?: readonly string[]
}

async function offered(thing: Offering | undefined, word: string, names: Names): Promise<Candidates> {
  if (thing?.choices) return { words: starting(thing.choices, word) }
  if (thing?.completes === undefined) return { words: [] }
  if (thing.completes === "file") return { words: [], areFiles: true }
  return { words: starting(await names(thing.completes), word) }
}

function starting(words: readonly string[], word: string): string[] {
  return words.filter((each) => each.startsWith(word)).toSorted()
}
