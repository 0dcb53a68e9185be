import { createLog } from "@warren/base/log.ts"
import { Journal } from "@warren/protocol/journal.ts"
import { describe, expect, test } from "vitest"
import { keepEntries, type Entry } from "./log-entries.ts"

describe("a log whose file cannot be written", () => {
  test("stops nobody, is read over the wire all the same, and says afterwards how much is missing", () => {
    const journal = new Journal<Entry>(100)
    const [lines, about]: [string[], string[]] = [[], []]
    const disk = { isFull: false }
    const to =
      (file: string[]) =>
      (line: string): void => {
        if (disk.isFull) throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" })
        file.push(line)
      }
    const log = createLog(keepEntries(journal, to(lines), (_, line) => to(about)(line)))
    const session = "ses_00000000000000000000"
    log("info", "first", { session })
    disk.isFull = true
    log("info", "second", { session })
    log("info", "third")
    disk.isFull = false
    log("info", "fourth", { session })
    log("info", "fifth")
    expect(journal.tail(10).map(({ item }) => item.event)).toEqual(["first", "second", "third", "fourth", "fifth"])
    const written = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(written.map(({ event }) => event)).toEqual(["first", "log.lost", "fourth", "fifth"])
    expect(written[1]).toMatchObject({ level: "warn", lines: 2, time: expect.any(String) })
    expect(about.map((line) => (JSON.parse(line) as Entry).event)).toEqual(["first", "fourth"])
  })
})
