import { dashed } from "./arguments/parse.ts"
import type { Flag } from "./arguments/flag.ts"
import type { Word } from "./arguments/word.ts"
import type { Colour } from "./terminal/terminal.ts"
import { commonFlags, groups, type Verb } from "./verb.ts"

interface Painter {
  paint(colour: Colour, text: string): string
}

const isHidden = ({ name }: Verb): boolean => name.startsWith("_")

/** All verbs, each with its sentence. */
export function overview(verbs: readonly Verb[], painter: Painter): string {
  const width = Math.max(...verbs.map(({ name }) => name.length))
  const sections = groups.map((group) => {
    const lines = verbs
      .filter((verb) => verb.group === group && !isHidden(verb))
      .map(({ name, doc }) => `  ${painter.paint("cyan", name.padEnd(width))}  ${firstSentence(doc)}`)
    return [painter.paint("bold", group), ...lines].join("\n")
  })
  return [
    "warren: a private computer for every agent, in milliseconds",
    "",
    "    warren run -- sh -c 'echo $((6*7))'",
    "",
    sections.join("\n\n"),
    "",
    "`warren VERB --help` says more, with an example. `--json` gives every answer as JSON.",
  ].join("\n")
}

export function verbHelp(verb: Verb, painter: Painter): string {
  const own = Object.entries(verb.flags).filter(([key]) => !(key in commonFlags))
  const sections = [
    verb.doc,
    `${painter.paint("bold", "Usage")}\n  ${usageOf(verb)}`,
    section("Words", Object.values(verb.words).map(wordLine), painter),
    section("Flags", own.map(flagLine), painter),
    section("Flags of every verb", Object.entries(commonFlags).map(flagLine), painter),
    section(
      "Examples",
      verb.examples.map((line) => [line, ""] as const),
      painter,
    ),
  ]
  return sections.filter((text) => text !== "").join("\n\n")
}

export function usageOf({ name, words, flags }: Verb): string {
  const hasFlags = Object.keys(flags).length > Object.keys(commonFlags).length
  const parts = Object.values(words).map(({ label, min, max, isCommand }) => {
    const many = max > 1 ? `${label}…` : label
    if (isCommand) return min > 0 ? `-- ${many}` : `[-- ${many}]`
    return min > 0 ? many : `[${many}]`
  })
  return ["warren", name, ...(hasFlags ? ["[FLAGS]"] : []), ...parts].join(" ")
}

export function flagLine([key, { value, short, doc }]: readonly [string, Flag<unknown>]): readonly [string, string] {
  const name = short === undefined ? dashed(key) : `-${short}, ${dashed(key)}`
  return [value === undefined ? name : `${name} ${value}`, doc]
}

function wordLine({ label, doc }: Word<unknown>): readonly [string, string] {
  return [label, doc]
}

function section(title: string, lines: readonly (readonly [string, string])[], painter: Painter): string {
  if (lines.length === 0) return ""
  const width = Math.min(34, Math.max(...lines.map(([name]) => name.length)))
  const shown = lines.map(([name, doc]) => `  ${doc === "" ? name : `${name.padEnd(width)}  ${doc}`}`)
  return [painter.paint("bold", title), ...shown].join("\n")
}

function firstSentence(doc: string): string {
  return /^[^.:]*[.:]?/.exec(doc)?.[0].replace(/:$/, ".") ?? doc
}
