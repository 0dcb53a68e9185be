import { parseArgs } from "node:util"
import { messageOf } from "@warren/base/fault.ts"

/** What was typed makes no sense; the message says what would. */
export class Misasked extends Error {}

interface Options {
  readonly only?: string[] | undefined
  readonly quick?: boolean | undefined
  /** Every metric with all its samples: what happens anyway when nothing else is said, said aloud. */
  readonly full?: boolean | undefined
  /** What one metric may take at most. */
  readonly seconds?: string | undefined
  readonly json?: string | undefined
  /** A page for people, with a plot beside it. */
  readonly page?: string | undefined
}

export function optionsOf(args: readonly string[]): Options {
  const only = { type: "string", multiple: true } as const
  try {
    const [file, flag] = [{ type: "string" }, { type: "boolean" }] as const
    const options = { only, quick: flag, full: flag, seconds: file, json: file, page: file }
    const { values } = parseArgs({ args: [...args], options })
    if (values.full === true && values.quick === true) throw new Error("--full and --quick are opposites")
    if (values.seconds !== undefined && !(Number(values.seconds) > 0)) throw new Error("--seconds wants a number")
    return values
  } catch (thrown) {
    throw new Misasked(`${messageOf(thrown)}\nUsage: npm run bench -- ${usage}`)
  }
}

const usage = "[--full | --quick] [--seconds N] [--only NAME]… [--json FILE] [--page FILE.md]"

/** The metrics that were asked for, by name or by the beginning of it; all when nothing was. */
export function select(names: readonly string[], only: readonly string[]): string[] {
  const unknown = only.filter((wanted) => !names.some((name) => name.startsWith(wanted)))
  if (unknown.length > 0) {
    throw new Misasked(`There is no metric ${unknown.join(", ")}. There are:\n  ${names.join("\n  ")}`)
  }
  return names.filter((name) => only.length === 0 || only.some((wanted) => matches(name, wanted, names)))
}

/** A whole name means that metric alone, even when another one begins the same way. */
function matches(name: string, wanted: string, names: readonly string[]): boolean {
  return names.includes(wanted) ? name === wanted : name.startsWith(wanted)
}
