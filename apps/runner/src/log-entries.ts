import type { Journal } from "@warren/protocol/journal.ts"
import type { LogEntry } from "@warren/protocol/user-plane.ts"
import type { z } from "zod"

export type Entry = z.output<typeof LogEntry>

/**
 * A log writer that also keeps each line as an entry for those who read the log over the wire. A disk that is full stops nobody who only
 * has something to say: how many lines are missing is written when there is room again.
 */
export function keepEntries(
  journal: Journal<Entry>,
  write: (line: string) => void,
  writeAbout: (session: string, line: string) => void,
): (line: string) => void {
  let lost = 0
  return (line) => {
    const { time, level, event, ...fields } = JSON.parse(line) as Entry & Entry["fields"]
    journal.append({ time, level, event, fields })
    try {
      if (lost > 0) write(`${JSON.stringify({ time, level: "warn", event: "log.lost", lines: lost })}\n`)
      lost = 0
      write(line)
      if (typeof fields["session"] === "string") writeAbout(fields["session"], line)
    } catch {
      lost++
    }
  }
}
