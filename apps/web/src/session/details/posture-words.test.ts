import { describe, expect, test } from "vitest"
import { findings } from "./posture-words.ts"

const whole = {
  measuredAt: "2026-01-02T03:04:05.678Z",
  noNewPrivileges: true,
  seccompMode: 2,
  capabilities: { effective: "0000000000000000", bounding: "00000000000000c3" },
  namespaces: { pid: { id: "pid:[4026532]", isOwn: true }, net: { id: "net:[1]", isOwn: false }, odd: { id: "x" } },
  uidMap: [],
  degraded: ["memory is not limited here"],
}

describe("a posture in plain words", () => {
  test("each measured thing is a sentence with its evidence", () => {
    const found = findings(whole)
    expect(found.filter(({ isGood }) => isGood).map(({ words }) => words)).toEqual([
      "Cannot gain privileges",
      "System calls are filtered",
      "Has none of root's powers",
      "Sees no other process",
    ])
    expect(found.find(({ words }) => words.startsWith("Sees"))?.evidence).toContain("pid:[4026532]")
  })

  test("what is weaker is said, never hidden", () => {
    const weak = findings(whole).filter(({ isGood }) => !isGood)
    expect(weak.map(({ words }) => words)).toEqual(["Not so: has its own network", "Memory is not limited here"])
  })

  test("what was not measured is not claimed", () => {
    expect(findings({ measuredAt: whole.measuredAt, degraded: [] })).toEqual([])
  })
})
