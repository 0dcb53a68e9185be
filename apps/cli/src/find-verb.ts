import { Fault } from "@warren/base/fault.ts"
import { nearest } from "./arguments/nearest.ts"
import { dashed } from "./arguments/parse.ts"
import { commonFlags, type Verb } from "./verb.ts"

interface Found {
  readonly verb: Verb | undefined
  /** What stands behind the verb, and the common flags that stood before it. */
  readonly args: readonly string[]
  /** Whether the overview was asked for, rather than a verb forgotten. */
  readonly isAsked: boolean
}

/** The verb that is meant: `run`, or two words as in `images pull`. */
export function findVerb(verbs: readonly Verb[], args: readonly string[]): Found {
  const before = commonBefore(args)
  const [first, second] = args.slice(before)
  const leading = args.slice(0, before)
  if (first === undefined) return { verb: undefined, args: [], isAsked: leading.some(isHelp) }
  if (first === "help" && verbs.every(({ name }) => name !== "help")) {
    return findVerb(verbs, [...args.slice(before + 1), "--help"])
  }
  const two = verbs.find(({ name }) => name === `${first} ${second}`)
  if (two) return { verb: two, args: [...leading, ...args.slice(before + 2)], isAsked: true }
  const one = verbs.find(({ name }) => name === first)
  if (one) return { verb: one, args: [...leading, ...args.slice(before + 1)], isAsked: true }
  return misspelt(verbs, first, second)
}

/** How many of the first arguments are common flags with their values: they may stand before the verb, too. */
function commonBefore(args: readonly string[]): number {
  let at = 0
  for (let arg = args[at]; arg?.startsWith("-"); arg = args[at]) {
    const [name] = arg.split("=")
    const known = Object.entries(commonFlags).find(([key, { short }]) => dashed(key) === name || `-${short}` === name)
    if (!known) throw new Fault("invalid", `there is no ${name} before a verb`, { hint: "warren --help" })
    at += known[1].value === undefined || arg.includes("=") ? 1 : 2
  }
  return Math.min(at, args.length)
}

const isHelp = (arg: string): boolean => arg === "--help" || arg === "-h"

function misspelt(verbs: readonly Verb[], first: string, second: string | undefined): Found {
  const family = verbs.filter(({ name }) => name.startsWith(`${first} `))
  if (family.length > 0) {
    const choices = family.map(({ name }) => name.slice(first.length + 1))
    if (second === undefined || isHelp(second)) {
      throw new Fault("invalid", `warren ${first} needs one of: ${choices.join(", ")}`, {
        hint: `warren ${first} ${choices[0]} --help`,
      })
    }
    const near = nearest(second, choices)
    throw new Fault("invalid", `there is no verb "${first} ${second}"`, {
      hint: near === undefined ? `there is: ${choices.join(", ")}` : `did you mean: warren ${first} ${near}`,
    })
  }
  const near = nearest(first, [...new Set(verbs.map(({ name }) => name.split(" ")[0] ?? ""))])
  throw new Fault("invalid", `there is no verb "${first}"`, {
    hint: near === undefined ? "warren --help shows them all" : `did you mean: warren ${near}`,
  })
}
