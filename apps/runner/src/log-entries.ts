import type { Journal } from "@warren/protocol/journal.ts"
import type { LogEntry } from "@warren/protocol/user-plane.ts"
import type { z } from "zod"

export type Entry = z.output<typeof LogEntry>

/** A log writer that also keeps each line as an entry for those who read the log over the wire. */
export function keepEntries(
  journal: Journal<Entry>,
  write: (line: string) => void,
  writeAbout: (session: string, line: string) => void,
): (line: string) => void {
  return (line) => {
    const { time, level, event, ...fields } = JSON.parse(line) as Entry & Entry["fields"]
    journal.append({ time, level, event, fields })
    write(line)
    if (typeof fields["session"] === "string") writeAbout(fields["session"], line)
  }
}
