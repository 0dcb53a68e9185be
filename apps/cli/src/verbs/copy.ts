import { Fault } from "@warren/base/fault.ts"
import { flag } from "../arguments/flag.ts"
import { word } from "../arguments/word.ts"
import { Download } from "../copy/download.ts"
import type { InsideFiles } from "../copy/inside.ts"
import { locationOf, type Location, type Place } from "../copy/location.ts"
import { SessionFiles } from "../copy/session-files.ts"
import { Tally } from "../copy/tally.ts"
import { UploadTree } from "../copy/upload-tree.ts"
import { WorkspaceFiles } from "../copy/workspace-files.ts"
import { withRunner, type Desk } from "../desk.ts"
import type { Runner } from "../runner/runner.ts"
import { writeOut } from "../terminal/terminal.ts"
import { bytesText } from "../terminal/units.ts"
import { verb } from "../verb.ts"

type Inside = Extract<Location, { kind: "inside" }>
type Outside = Exclude<Location, Inside>

export const copyVerb = verb({
  name: "cp",
  group: "Files and data",
  doc: "Copy files and folders into a session or out of it: SESSION:PATH, @WORKSPACE:PATH, a path here, or `-`.",
  examples: [
    "warren cp ./site my-session:/workspace/",
    "warren cp my-session:/workspace/report.pdf .",
    "warren cp @website:src/main.ts - | less",
    "tar c src | warren cp - my-session:/tmp/src.tar",
  ],
  flags: { as: flag.text("ACCOUNT", "Whose files they are inside (`user`, `root`).", { short: "u" }) },
  words: {
    from: word.one("FROM", "What.", { completes: "file" }),
    to: word.one("TO", "Where to; into it when it is a folder.", { completes: "file" }),
  },
  run: ({ flags, words }, desk) =>
    withRunner(desk, async (runner) => {
      const [from, to] = [locationOf(words.from), locationOf(words.to)]
      using progress = desk.output.progress()
      const tally = new Tally(progress)
      if ((from.kind === "inside") === (to.kind === "inside")) {
        throw new Fault("invalid", "one side of cp is inside and the other is here", { hint: "warren cp --help" })
      }
      const { place } = from.kind === "inside" ? from : (to as Inside)
      await using files = filesOf(runner, place, flags.as)
      const copy = { files, desk, tally }
      if (from.kind === "inside") await copyOut(copy, from, to as Outside)
      else await copyIn(copy, from, to as Inside)
      progress[Symbol.dispose]()
      for (const each of tally.skipped) desk.output.note(`left out: ${each}`)
      if (to.kind === "stream") return
      await desk.output.show(tally.toData(), () => `${tally.files} files, ${bytesText(tally.bytes)}`)
    }),
})

interface Copy {
  readonly files: InsideFiles
  readonly desk: Desk
  readonly tally: Tally
}

async function copyOut({ files, desk, tally }: Copy, from: Inside, to: Outside): Promise<void> {
  if (to.kind === "local") return new Download(files, tally).run(from.path, to.path)
  for await (const piece of tally.count(from.path, files.read(from.path))) await writeOut(desk.terminal.stdout, piece)
}

async function copyIn({ files, desk, tally }: Copy, from: Outside, to: Inside): Promise<void> {
  if (from.kind === "local") return new UploadTree(files, tally).run(from.path, to.path)
  await files.write(to.path, tally.count(to.path, desk.terminal.stdin as AsyncIterable<Buffer>))
  tally.files++
}

function filesOf(runner: Runner, place: Place, as: string | undefined): InsideFiles {
  if ("session" in place) return new SessionFiles(runner, place.session, as)
  if (as !== undefined) throw new Fault("invalid", "--as is for files of a session: a workspace is yours")
  return new WorkspaceFiles(runner, place.workspace)
}
