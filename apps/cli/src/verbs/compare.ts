import { flag } from "../arguments/flag.ts"
import { word } from "../arguments/word.ts"
import { withRunner } from "../desk.ts"
import { table } from "../terminal/table.ts"
import { verb } from "../verb.ts"
import { given } from "./wishes.ts"

const words = { here: "only in the first", there: "only in the second", both: "not the same" } as const

export const compareVerb = verb({
  name: "compare",
  group: "Sessions",
  doc: "Which files of two sessions are not the same, such as of two forks.",
  examples: ["warren compare fix-1 fix-2"],
  flags: {
    folder: flag.text(
      "FOLDER",
      "In both; where the first one's agent works, or the workspace and the home, unless said.",
    ),
  },
  words: {
    first: word.one("SESSION", "Id or name of the first session.", { completes: "session" }),
    second: word.one("OTHER", "Id or name of the second.", { completes: "session" }),
  },
  async run({ flags, words: { first, second } }, desk) {
    const asked = { id: first, other: second, ...given({ folder: flags.folder }) }
    const found = await withRunner(desk, (runner) => runner.call("session.compare", asked))
    await desk.output.show(found, () =>
      found.files.length === 0
        ? "No file differs."
        : table(
            ["WHERE", "PATH"],
            found.files.map(({ where, path }) => [words[where], path]),
          ),
    )
    if (found.isCut) desk.output.note("There are more.")
  },
})
