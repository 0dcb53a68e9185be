import { flag } from "../arguments/flag.ts"
import { word } from "../arguments/word.ts"
import { withRunner } from "../desk.ts"
import { allPages } from "../runner/pages.ts"
import { table } from "../terminal/table.ts"
import { ageText } from "../terminal/units.ts"
import { verb } from "../verb.ts"
import { given } from "./wishes.ts"

const snapshot = verb({
  name: "snapshot",
  group: "Sessions",
  doc: "Freeze what a session has written, while it goes on, and say the snapshot's id.",
  examples: ["warren snapshot my-session", "warren run --from $(warren snapshot my-session) -- ls"],
  flags: { name: flag.text("NAME", "A name to know it by.") },
  words: { session: word.one("SESSION", "Id or name of the session.", { completes: "session" }) },
  async run({ flags, words: { session } }, desk) {
    using progress = desk.output.progress()
    progress.say(`Making a snapshot of ${session} …`)
    const made = await withRunner(desk, (runner) =>
      runner.call("snapshot.create", { session, ...given({ name: flags.name }) }),
    )
    progress[Symbol.dispose]()
    await desk.output.show(made, () => made.id)
  },
})

const ls = verb({
  name: "snapshots ls",
  group: "Sessions",
  doc: "List snapshots, the newest first.",
  examples: ["warren snapshots ls", "warren snapshots ls my-session"],
  flags: {},
  words: { session: word.optional("SESSION", "Only those of this session.", { completes: "session" }) },
  async run({ words }, desk) {
    const found = await withRunner(desk, (runner) =>
      allPages((page) => runner.call("snapshot.list", { ...page, ...given({ session: words.session }) })),
    )
    await desk.output.show(found, () =>
      table(
        ["ID", "NAME", "SESSION", "IMAGE", "AGE"],
        found.map(({ id, name, session, image, createdAt, isAutomatic }) => [
          id,
          name ?? (isAutomatic ? "(automatic)" : "-"),
          session,
          image,
          ageText(createdAt),
        ]),
      ),
    )
  },
})

const rm = verb({
  name: "snapshots rm",
  group: "Sessions",
  doc: "Take snapshots away; sessions that started from them go on.",
  examples: ["warren snapshots rm snp_0123456789abcdefghjk"],
  flags: {},
  words: { snapshots: word.some("SNAPSHOT", "Ids of snapshots.", { completes: "snapshot" }) },
  run: ({ words }, desk) =>
    withRunner(desk, async (runner) => {
      for (const id of words.snapshots) {
        await runner.call("snapshot.delete", { id })
        await desk.output.show({ deleted: id }, () => id)
      }
    }),
})

export const snapshotVerbs = [snapshot, ls, rm]
