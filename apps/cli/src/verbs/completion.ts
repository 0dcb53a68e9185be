import { Fault } from "@warren/base/fault.ts"
import type { Completes } from "../arguments/flag.ts"
import { word } from "../arguments/word.ts"
import { candidates } from "../completion/candidates.ts"
import { completeVerb, completionScripts } from "../completion/scripts.ts"
import { connectRunner, type Desk } from "../desk.ts"
import { allPages } from "../runner/pages.ts"
import type { Runner } from "../runner/runner.ts"
import { familiarName } from "../terminal/image-name.ts"
import { verb, type Verb } from "../verb.ts"

const namesMax = 200
/** Who waits for a completion does not wait long. */
const patienceMs = 1_000

const completion = verb({
  name: "completion",
  group: "This tool",
  doc: "A script that completes verbs, flags and names of sessions in your shell.",
  examples: ['eval "$(warren completion bash)"', "warren completion fish > ~/.config/fish/completions/warren.fish"],
  flags: {},
  words: { shell: word.one("SHELL", "`bash`, `zsh` or `fish`.") },
  async run({ words: { shell } }, desk) {
    const known = Object.entries(completionScripts).find(([name]) => name === shell)
    if (!known)
      throw new Fault("invalid", `there is no completion for "${shell}"`, { hint: "for bash, zsh and fish there is" })
    await desk.output.show({ shell, script: known[1] }, () => known[1].trimEnd())
  },
})

/** `verbs` is asked for when it is needed: this verb is one of them. */
export function completionVerbs(verbs: () => readonly Verb[]): Verb[] {
  const complete = verb({
    name: completeVerb,
    group: "This tool",
    doc: "What a shell asks to complete a line.",
    examples: ["warren completion bash"],
    flags: {},
    words: { line: word.command("The words of the line; the last one is being typed.", { isOptional: true }) },
    async run({ words: { line } }, desk) {
      const found = await candidates(verbs(), line.slice(0, -1), line.at(-1) ?? "", (kind) => namesOf(kind, desk))
      const said = found.areFiles ? [":files"] : found.words
      await desk.output.show(said, () => said.join("\n"))
    },
  })
  return [completion, complete]
}

/** Names that are there now; none when nobody can be asked: a completion does not complain. */
async function namesOf(kind: Exclude<Completes, "file">, desk: Desk): Promise<readonly string[]> {
  try {
    const { home } = await desk.place()
    await using runner = await connectRunner(home, AbortSignal.any([desk.signal, AbortSignal.timeout(patienceMs)]))
    return await askNames[kind](runner)
  } catch {
    return []
  }
}

const askNames: Readonly<Record<Exclude<Completes, "file">, (runner: Runner) => Promise<string[]>>> = {
  session: async (runner) =>
    (await allPages((page) => runner.call("session.list", page), namesMax)).map(({ name }) => name),
  snapshot: async (runner) =>
    (await allPages((page) => runner.call("snapshot.list", page), namesMax)).map(({ id }) => id),
  image: async (runner) => (await runner.call("image.list", {})).items.flatMap(({ names }) => names.map(familiarName)),
  workspace: async (runner) =>
    (await allPages((page) => runner.call("workspace.list", page), namesMax)).map(({ name }) => name),
  secret: async (runner) =>
    (await allPages((page) => runner.call("secrets.list", page), namesMax)).map(({ name }) => name),
}
