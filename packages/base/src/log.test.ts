import { describe, expect, test } from "vitest"
import { Fault } from "./fault.ts"
import { createLog, timed, type Level, type Log } from "./log.ts"

interface Line {
  readonly [field: string]: unknown
}

function recorded(options: { level?: Level } = {}): { log: Log; lines: Line[] } {
  const lines: Line[] = []
  const write = (line: string): void => {
    expect(line.endsWith("\n")).toBe(true)
    expect(line.indexOf("\n")).toBe(line.length - 1)
    lines.push(JSON.parse(line) as Line)
  }
  return { log: createLog(write, { now: () => 0, ...options }), lines }
}

describe("log", () => {
  test("writes one JSON line for one thing", () => {
    const { log, lines } = recorded()
    log("info", "session.create", { user: "usr_1", text: "two\nlines", absent: undefined, nothing: null })
    const time = "1970-01-01T00:00:00.000Z"
    expect(lines).toEqual([
      { time, level: "info", event: "session.create", user: "usr_1", text: "two\nlines", nothing: null },
    ])
  })

  test.each([
    ["debug", 4],
    ["info", 3],
    ["warn", 2],
    ["error", 1],
  ] as const)("at level %s writes what is as important or more", (level, count) => {
    const { log, lines } = recorded({ level })
    for (const one of ["debug", "info", "warn", "error"] as const) log(one, "x")
    expect(lines.length).toBe(count)
    expect(lines.at(-1)).toMatchObject({ level: "error" })
  })

  test("does not write debug unless asked", () => {
    const { log, lines } = recorded()
    log("debug", "x")
    expect(lines).toEqual([])
  })

  test("with adds fields to every line, leaves the log it came from alone, and the nearest wins", () => {
    const { log, lines } = recorded()
    const inner = log.with({ user: "a", session: "1" }).with({ session: "2" })
    inner("info", "x", { user: "b" })
    inner("info", "x")
    log("info", "x")
    expect(lines.map(({ user, session }) => [user, session])).toEqual([
      ["b", "2"],
      ["a", "2"],
      [undefined, undefined],
    ])
  })

  test("leaves a field at the limit whole and cuts one that is a character longer", () => {
    const { log, lines } = recorded()
    log("info", "x", { whole: "a".repeat(2048), long: "a".repeat(2049), emoji: "😀".repeat(2048) })
    expect(lines[0]).toMatchObject({ whole: "a".repeat(2048), long: `${"a".repeat(2048)}…` })
    expect(String(lines[0]?.["emoji"]).length).toBe(2049)
  })
})

describe("timed", () => {
  test("tells success, duration and fields, and gives the answer", async () => {
    const { log, lines } = recorded()
    expect(await timed(log, "work", { driver: "oci" }, () => Promise.resolve(7))).toBe(7)
    expect(lines).toEqual([
      { time: expect.any(String), level: "info", event: "work", driver: "oci", ok: true, ms: expect.any(Number) },
    ])
  })

  test.each([
    [new Fault("conflict", "no"), "warn", "conflict"],
    [new Fault("cancelled", "stop"), "info", "cancelled"],
    [new DOMException("stop", "AbortError"), "info", "cancelled"],
    [new Error("bug"), "error", "internal"],
  ])("tells a failure by its kind and lets it travel: %s", async (failure, level, code) => {
    const { log, lines } = recorded()
    await expect(timed(log, "work", {}, () => Promise.reject(failure))).rejects.toBe(failure)
    expect(lines).toMatchObject([{ level, code, ok: false, message: failure.message, ms: expect.any(Number) }])
  })
})
