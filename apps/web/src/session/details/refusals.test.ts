import { describe, expect, test } from "vitest"
import { refusals } from "./refusals.ts"

const denial = (host: string, port: number, at: string) => ({ host, port, at, reason: "not allowed" })

describe("what was refused", () => {
  test("is one line for each host, the last first", () => {
    const all = refusals([
      denial("a.example", 443, "2026-01-01T00:00:01Z"),
      denial("b.example", 80, "2026-01-01T00:00:02Z"),
      denial("a.example", 80, "2026-01-01T00:00:03Z"),
    ])
    expect(all.map(({ wanted, times, at }) => [wanted, times, at.slice(-3)])).toEqual([
      ["a.example", 2, "03Z"],
      ["b.example", 1, "02Z"],
    ])
  })

  test("names the port where it is not one of the usual ones", () => {
    expect(refusals([denial("a.example", 22, "2026-01-01T00:00:01Z")])[0]?.wanted).toBe("a.example:22")
  })
})
