import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import { runnerRootOf } from "@warren/protocol/places.ts"
import { LogEntry } from "@warren/protocol/user-plane.ts"
import type { z } from "zod"
import { flag } from "../arguments/flag.ts"
import { noRunner, withRunner, type Desk } from "../desk.ts"
import { verb } from "../verb.ts"

type Entry = z.output<typeof LogEntry>

const levels = ["debug", "info", "warn", "error"] as const
const colours = { debug: "dim", info: "cyan", warn: "yellow", error: "red" } as const

/** What the runner logged. Of a runner that does not run, its file is read: that is when one wants to know. */
export const logsVerb = verb({
  name: "logs",
  group: "Warren itself",
  doc: "What the runner has logged, and with --follow what it logs.",
  examples: ["warren logs --tail 20", "warren logs --follow --level warn"],
  flags: {
    follow: flag.on("Go on with what is logged next.", { short: "f" }),
    tail: flag.whole("COUNT", "How many of the newest lines (100).", { min: 1, max: 1_000 }),
    level: flag.choice(levels, "Only this level and worse."),
  },
  words: {},
  async run({ flags }, desk) {
    const least = levels.indexOf(flags.level ?? "debug")
    const show = async (entry: Entry): Promise<void> => {
      if (levels.indexOf(entry.level) >= least) await desk.output.show(entry, () => lineOf(entry, desk))
    }
    const limit = flags.tail ?? 100
    try {
      await withRunner(desk, async (runner) => {
        const { entries } = await runner.call("logs.read", { limit })
        for (const { entry } of entries) await show(entry)
        if (!flags.follow) return
        for await (const { item } of runner.feed("logs.follow", { after: entries.at(-1)?.seq ?? 0 })) await show(item)
      })
    } catch (thrown) {
      if (!(thrown instanceof Fault) || thrown.code !== "unavailable" || flags.follow) throw thrown
      for (const entry of (await entriesOfFile((await desk.place()).home)).slice(-limit)) await show(entry)
    }
  },
})

async function entriesOfFile(home: string): Promise<Entry[]> {
  const text = await readFile(join(runnerRootOf(home), "logs", "runner.log"), "utf8").catch((cause: unknown) => {
    throw noRunner(home, cause)
  })
  return text.split("\n").flatMap((line) => {
    try {
      const { time, level, event, ...fields } = JSON.parse(line) as Record<string, unknown>
      const entry = LogEntry.safeParse({ time, level, event, fields })
      return entry.success ? [entry.data] : []
    } catch {
      // The last line of a runner that was killed may be half a line.
      return []
    }
  })
}

function lineOf({ time, level, event, fields }: Entry, { output }: Desk): string {
  const shown = Object.entries(fields).map(
    ([name, value]) => `${output.paint("dim", `${name}=`)}${JSON.stringify(value)}`,
  )
  return [time.slice(11, 23), output.paint(colours[level], level.padEnd(5)), event, ...shown].join(" ")
}
