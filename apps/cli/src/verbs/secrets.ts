import { Fault } from "@warren/base/fault.ts"
import { word } from "../arguments/word.ts"
import { withRunner } from "../desk.ts"
import { allPages } from "../runner/pages.ts"
import { readSecret } from "../terminal/read-secret.ts"
import { table } from "../terminal/table.ts"
import { ageText } from "../terminal/units.ts"
import { verb } from "../verb.ts"

const name = word.one("NAME", "The name of the secret.", { completes: "secret" })

const ls = verb({
  name: "secrets ls",
  group: "Files and data",
  doc: "List the names of secrets. Their values are never told.",
  examples: ["warren secrets ls"],
  flags: {},
  words: {},
  async run(_, desk) {
    const found = await withRunner(desk, (runner) => allPages((page) => runner.call("secrets.list", page)))
    await desk.output.show(found, () =>
      table(
        ["NAME", "CHANGED", "USED"],
        found.map((secret) => [
          secret.name,
          ageText(secret.updatedAt),
          secret.usedAt ? ageText(secret.usedAt) : "never",
        ]),
      ),
    )
  },
})

const set = verb({
  name: "secrets set",
  group: "Files and data",
  doc: "Keep a secret, or replace it. Its value comes from the standard input, never from the command line.",
  examples: ["warren secrets set GITHUB_TOKEN < token.txt", "warren secrets set GITHUB_TOKEN"],
  flags: {},
  words: { name },
  async run({ words }, desk) {
    const value = await readSecret(desk.terminal, `Value of ${words.name}: `, desk.signal)
    if (value === "") throw new Fault("invalid", "a secret cannot be empty")
    const kept = await withRunner(desk, (runner) => runner.call("secrets.set", { name: words.name, value }))
    await desk.output.show(kept, () => `${kept.name} is kept.`)
  },
})

const rm = verb({
  name: "secrets rm",
  group: "Files and data",
  doc: "Forget a secret.",
  examples: ["warren secrets rm GITHUB_TOKEN"],
  flags: {},
  words: { name },
  async run({ words }, desk) {
    const answer = await withRunner(desk, (runner) => runner.call("secrets.delete", { name: words.name }))
    if (!answer.isDeleted) throw new Fault("not_found", `there is no secret "${words.name}"`)
    await desk.output.show(answer, () => `${words.name} is forgotten.`)
  },
})

export const secretVerbs = [ls, set, rm]
