import { flag } from "../arguments/flag.ts"
import { word } from "../arguments/word.ts"
import { harmless } from "../chat/lines.ts"
import { withRunner } from "../desk.ts"
import { record, table } from "../terminal/table.ts"
import { verb } from "../verb.ts"
import { given } from "./wishes.ts"

const session = word.one("SESSION", "Id or name of the session.", { completes: "session" })
const folder = flag.text("FOLDER", "Where the repository is; where the agent works unless said.")
const against = flag.text("REF", "`head`, `base` (since it left the remote's main branch), or a ref.")

const state = verb({
  name: "git state",
  group: "Agents",
  doc: "How the repository in a session is.",
  examples: ["warren git state my-session"],
  flags: { folder },
  words: { session },
  async run({ flags, words }, desk) {
    const found = await withRunner(desk, (runner) =>
      runner.call("session.gitState", { id: words.session, ...given({ folder: flags.folder }) }),
    )
    await desk.output.show(found, () => {
      if (!found.isRepository) return `There is no repository in ${found.folder}.`
      const { ahead, behind } = found
      return record({
        ...{ folder: found.folder, branch: found.branch ?? "none", commit: found.commit ?? "none" },
        ...{ follows: found.upstream, remote: found.remote },
        ...(ahead === undefined ? {} : { ahead: String(ahead), behind: String(behind ?? 0) }),
        changes: String(found.changes),
      })
    })
  },
})

const files = verb({
  name: "git files",
  group: "Agents",
  doc: "Which files changed in the repository in a session.",
  examples: ["warren git files my-session", "warren git files my-session --against base"],
  flags: { folder, against },
  words: { session },
  async run({ flags, words }, desk) {
    const asked = given({ folder: flags.folder, against: flags.against })
    const found = await withRunner(desk, (runner) =>
      runner.call("session.changedFiles", { id: words.session, ...asked }),
    )
    await desk.output.show(found, () =>
      table(
        ["STATUS", "+", "-", "PATH"],
        found.files.map(({ status, additions, deletions, path, from }) => [
          ...[status, String(additions ?? "-"), String(deletions ?? "-")],
          from === undefined ? path : `${from} → ${path}`,
        ]),
      ),
    )
    if (found.isCut) desk.output.note("There are more.")
  },
})

const diff = verb({
  name: "git diff",
  group: "Agents",
  doc: "What changed in the repository in a session, as git writes it.",
  examples: ["warren git diff my-session", "warren git diff my-session src/login.ts --against base"],
  flags: { folder, against },
  words: { session, path: word.optional("PATH", "Only this file or folder.") },
  async run({ flags, words }, desk) {
    const asked = given({ folder: flags.folder, against: flags.against, path: words.path })
    const found = await withRunner(desk, (runner) => runner.call("session.diff", { id: words.session, ...asked }))
    // A terminal is not to be steered by a file; whoever applies it gets every byte.
    await desk.output.show(found, () =>
      (desk.terminal.stdout.isTTY ? harmless(found.text) : found.text).replace(/\n$/, ""),
    )
    if (found.isCut) desk.output.note("There is more: ask for one path.")
  },
})

const pr = verb({
  name: "git pr",
  group: "Agents",
  doc: "Push the branch in a session and ask for it to be merged. The session needs the key git:write for the repository.",
  examples: ["warren git pr my-session --title 'Fix the login'"],
  flags: {
    folder,
    title: flag.text("TEXT", "What it is called; the name of the session unless said."),
    body: flag.text("TEXT", "What it says."),
    base: flag.text("BRANCH", "Where it is to go; the remote's main branch unless said."),
    draft: flag.on("Not to be merged yet."),
  },
  words: { session },
  async run({ flags, words }, desk) {
    const asked = given({ folder: flags.folder, body: flags.body, base: flags.base })
    const title = flags.title ?? words.session
    const made = await withRunner(desk, (runner) =>
      runner.call("session.createPullRequest", { id: words.session, title, isDraft: flags.draft, ...asked }),
    )
    await desk.output.show(made, () => made.url)
  },
})

export const gitVerbs = [state, files, diff, pr]
