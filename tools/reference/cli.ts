import { flagLine, usageOf } from "../../apps/cli/src/help.ts"
import { commonFlags, groups, type Verb } from "../../apps/cli/src/verb.ts"
import { verbs } from "../../apps/cli/src/verbs.ts"
import { code, page, table } from "./markdown.ts"

/** Every verb of the CLI, from the table it is made of. */
export function cliPage(): string {
  const shown = verbs.filter(({ name }) => !name.startsWith("_"))
  const sections = groups.map((group) => {
    const inside = shown.filter((verb) => verb.group === group).map(section)
    return [`## ${group}`, ...inside].join("\n\n")
  })
  return page("The CLI", "apps/cli/src/verbs.ts", [introduction, flagTable(Object.entries(commonFlags)), ...sections])
}

const introduction = `How it is used day by day: [the guide](../guides/cli.md). What a fault's exit code is: [faults](faults.md). Every verb
understands:`

function section(verb: Verb): string {
  const own = Object.entries(verb.flags).filter(([key]) => !(key in commonFlags))
  const words = Object.values(verb.words).map(({ label, doc }) => [code(label), doc])
  const parts = [
    `### warren ${verb.name}`,
    verb.doc,
    fenced([usageOf(verb), "", ...verb.examples.map((line) => `$ ${line}`)]),
    words.length === 0 ? "" : table(["word", ""], words),
    flagTable(own),
  ]
  return parts.filter((part) => part !== "").join("\n\n")
}

function flagTable(flags: readonly (readonly [string, Verb["flags"][string]])[]): string {
  if (flags.length === 0) return ""
  return table(
    ["flag", ""],
    flags.map((each) => {
      const [name, doc] = flagLine(each)
      return [code(name), doc]
    }),
  )
}

function fenced(lines: readonly string[]): string {
  return ["```sh", ...lines, "```"].join("\n")
}
