import { faultCodes, Fault, isCancellation, messageOf } from "@warren/base/fault.ts"
import { findPlace } from "./config/place.ts"
import { findVerb } from "./find-verb.ts"
import { overview, verbHelp } from "./help.ts"
import { Interrupts } from "./terminal/interrupts.ts"
import { Output } from "./terminal/output.ts"
import type { Terminal } from "./terminal/terminal.ts"
import type { Verb } from "./verb.ts"
import { verbs } from "./verbs.ts"

/** What a shell says of a program whose reader went away. */
const brokenPipeExitCode = 141

/** Does what the arguments ask for; the exit code is the result. */
export async function runCli(args: readonly string[], terminal: Terminal, programs: string): Promise<number> {
  using interrupts = new Interrupts()
  let isBroken = false
  terminal.onBroken((fault) => {
    isBroken = true
    interrupts.abort(fault)
  })
  // Until the verb's own table says which words are ours, a fault is told in the way that was probably asked for.
  let output = new Output(terminal, args.includes("--json"))
  try {
    const { verb, args: behind, isAsked } = findVerb(verbs, args)
    if (!verb) return await showOverview(output, isAsked)
    const { common, run } = verb.prepare(behind)
    output = new Output(terminal, common.json)
    if (common.help) return await showHelp(output, verb)
    const place = () => findPlace(common, terminal.env)
    return (await run({ terminal, output, interrupts, signal: interrupts.signal, programs, place })) ?? 0
  } catch (thrown) {
    if (isBroken) return brokenPipeExitCode
    const fault = faultOf(thrown)
    // Who pressed Ctrl-C knows.
    if (fault.code === "cancelled" && interrupts.exitCode !== undefined) return interrupts.exitCode
    output.fail(fault)
    if (fault.code === "internal" && terminal.env["WARREN_DEBUG"]) console.error(thrown)
    return faultCodes[fault.code].exitCode
  }
}

/** What nobody expected is told as it is: it happened in this person's own process, to their own things. */
function faultOf(thrown: unknown): Fault {
  if (thrown instanceof Fault || isCancellation(thrown)) return Fault.from(thrown)
  return new Fault("internal", messageOf(thrown), { cause: thrown, hint: "this is a bug; WARREN_DEBUG=1 shows where" })
}

async function showOverview(output: Output, isAsked: boolean): Promise<number> {
  await output.show(
    verbs.map(({ name, doc }) => ({ name, doc })),
    () => overview(verbs, output),
  )
  return isAsked ? 0 : faultCodes.invalid.exitCode
}

async function showHelp(output: Output, verb: Verb): Promise<number> {
  const { name, doc, examples } = verb
  await output.show({ name, doc, examples }, () => verbHelp(verb, output))
  return 0
}
