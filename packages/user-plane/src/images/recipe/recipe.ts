import { Fault } from "@warren/base/fault.ts"

export type Verb = "FROM" | "RUN" | "COPY" | "ENV" | "WORKDIR" | "USER" | "ARG" | "CMD" | "ENTRYPOINT" | "LABEL"

/** One instruction of a recipe. */
export interface Step {
  readonly verb: Verb
  readonly text: string
  /** Where it begins, counted from 1. */
  readonly line: number
}

const verbs = new Set<string>(["FROM", "RUN", "COPY", "ENV", "WORKDIR", "USER", "ARG", "CMD", "ENTRYPOINT", "LABEL"])
const stepsMax = 200
const recipeCharsMax = 2 ** 20

/** Reads a recipe: a Dockerfile of one stage, of which the verbs above are understood. */
export function readRecipe(text: string): Step[] {
  if (text.length > recipeCharsMax) throw new Fault("limit", "the recipe is too long")
  const steps: Step[] = []
  const lines = text.split(/\r?\n/)
  for (let at = 0; at < lines.length; at++) {
    const line = at + 1
    let whole = lines[at] ?? ""
    if (/^\s*(?:#|$)/.test(whole)) continue
    while (/\\\s*$/.test(whole) && at + 1 < lines.length) {
      const next = lines[++at] ?? ""
      // A comment between the lines of one instruction is none of it.
      whole = /^\s*#/.test(next) ? whole : `${whole.replace(/\\\s*$/, "")}${next}`
    }
    steps.push(stepOf(whole.trim(), line))
  }
  if (steps.length > stepsMax) throw new Fault("limit", `the recipe has more than ${stepsMax} steps`)
  const first = steps.find(({ verb }) => verb !== "ARG")
  if (first?.verb !== "FROM") throw new Fault("invalid", "a recipe begins with FROM")
  const second = steps.filter(({ verb }) => verb === "FROM")[1]
  if (second) throw mistake(second, "a recipe has one FROM")
  return steps
}

function stepOf(whole: string, line: number): Step {
  const [, verb = "", text = ""] = /^(\S+)\s*([\s\S]*)$/.exec(whole) ?? []
  const step = { verb: verb.toUpperCase() as Verb, text: text.trim(), line }
  if (!verbs.has(step.verb)) throw mistake(step, `${verb} is not understood`)
  if (step.text === "") throw mistake(step, `${verb} says nothing`)
  return step
}

export function mistake({ line }: Pick<Step, "line">, why: string): Fault {
  return new Fault("invalid", `line ${line} of the recipe: ${why}`, { subject: `line:${line}` })
}

/** `$NAME` and `${NAME}` replaced; what is not set is empty. `\$` is a dollar. */
export function expand(text: string, values: ReadonlyMap<string, string>): string {
  return text.replaceAll(
    /\\\$|\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::-([^}]*))?\})/g,
    (all, bare?: string, braced?: string, otherwise?: string) => {
      if (all === "\\$") return "$"
      const value = values.get(bare ?? braced ?? "")
      return value === undefined || value === "" ? (otherwise ?? "") : value
    },
  )
}

/** Words, of which quotes make one of several. */
export function words(step: Step, text: string): string[] {
  const found = [...text.matchAll(/(?:[^\s"']+|"(?:[^"\\]|\\.)*"|'[^']*')+/g)].map(([word]) =>
    word.replaceAll(/"((?:[^"\\]|\\.)*)"|'([^']*)'/g, (_, double?: string, single?: string) =>
      double === undefined ? (single ?? "") : double.replaceAll(/\\(.)/g, "$1"),
    ),
  )
  if (found.length === 0) throw mistake(step, "something is missing")
  return found
}

/** `KEY=value …`, or Docker's old `KEY value`. */
export function pairs(step: Step, text: string): [string, string][] {
  const old = /^([A-Za-z_]\w*)\s+([^=]*)$/.exec(text)
  if (old) return [[old[1] ?? "", old[2] ?? ""]]
  return words(step, text).map((word) => {
    const equals = word.indexOf("=")
    if (equals < 1 || !/^[\w.-]+$/.test(word.slice(0, equals)))
      throw mistake(step, `${JSON.stringify(word)} is not KEY=value`)
    return [word.slice(0, equals), word.slice(equals + 1)]
  })
}

/** A command as a list: JSON as it is, anything else through the shell. */
export function command(step: Step): string[] {
  if (!step.text.startsWith("[")) return ["/bin/sh", "-c", step.text]
  try {
    const list: unknown = JSON.parse(step.text)
    if (Array.isArray(list) && list.length > 0 && list.every((item) => typeof item === "string")) return list
  } catch {
    // Said below.
  }
  throw mistake(step, "the list is not one of texts")
}
