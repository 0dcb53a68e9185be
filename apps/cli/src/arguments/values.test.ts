import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { readDuration, readPort, readSize } from "./values.ts"

describe("values of flags", () => {
  test.each([
    ["1", 1],
    ["512m", 512 * 2 ** 20],
    ["1.5G", 1.5 * 2 ** 30],
    ["2GiB", 2 * 2 ** 30],
    ["10kb", 10 * 1024],
    ["0", 0],
  ])("the size %s", (text, bytes) => expect(readSize(text, "--x")).toBe(bytes))

  test.each([
    ["90s", 90_000],
    ["1.5h", 5_400_000],
    ["250ms", 250],
    ["7d", 604_800_000],
  ])("the time %s", (text, ms) => expect(readDuration(text, "--x")).toBe(ms))

  test.each(["", "m", "-1", "1x", "1e9", "0x10", " 1", "1 g", "9".repeat(15) + "t", "NaN", "constructor"])(
    "%j is no size",
    (text) => expect(() => readSize(text, "--x")).toThrow("--x must be a size"),
  )

  test.each(["", "5", "s", "-5s", "5 s", "1y", "1__proto__"])("%j is no time", (text) =>
    expect(() => readDuration(text, "--x")).toThrow("--x must be a time"),
  )

  test("a port is one of those there are", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 100_000 }), (port) => {
        if (port >= 1 && port <= 65_535) expect(readPort(String(port), "PORT")).toBe(port)
        else expect(() => readPort(String(port), "PORT")).toThrow("PORT must be")
      }),
    )
  })
})
