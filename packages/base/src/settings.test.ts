import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { Fault } from "./fault.ts"
import { count, load, text } from "./settings.ts"

const settings = {
  home: text("T_HOME", undefined, "Where things are."),
  name: text("T_NAME", "warren", "What it is called."),
  port: count("T_PORT", 7777, "Where it listens.", { min: 1, max: 65_535 }),
}

describe("settings", () => {
  test("are read by variable, or fall back", () => {
    expect(load(settings, { T_HOME: "/x", T_PORT: "80" })).toEqual({ home: "/x", name: "warren", port: 80 })
  })

  test("that are empty count as not set", () => {
    expect(load(settings, { T_HOME: "/x", T_NAME: "", T_PORT: "" })).toEqual({ home: "/x", name: "warren", port: 7777 })
  })

  test("without a fallback must be set, and the fault says which and what for", () => {
    expect(() => load(settings, {})).toThrow(
      expect.objectContaining({ code: "invalid", message: "T_HOME is not set", hint: "Where things are." }),
    )
  })

  test("that count are whole numbers within their range", () => {
    fc.assert(
      fc.property(fc.integer({ min: -10, max: 70_000 }), (number) => {
        const read = (): number => load(settings, { T_HOME: "/", T_PORT: String(number) }).port
        if (number >= 1 && number <= 65_535) expect(read()).toBe(number)
        else expect(read).toThrow(Fault)
      }),
    )
  })

  test.each(["0", "65536", "-1", "1.5", "1e3", "0x10", " 80", "80 ", "80\n", "NaN", "Infinity", "٣", "9".repeat(16)])(
    "refuse %j as a count",
    (given) => {
      expect(() => load(settings, { T_HOME: "/", T_PORT: given })).toThrow(expect.objectContaining({ code: "invalid" }))
    },
  )
})
