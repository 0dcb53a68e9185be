import { describe, expect, test } from "vitest"
import { record, table } from "./table.ts"
import { bytesText, durationText } from "./units.ts"

describe("what people read", () => {
  test("columns are as wide as what is in them, colours take no room", () => {
    expect(
      table(
        ["A", "LONG"],
        [
          ["\u001b[32mgreen\u001b[0m", "x"],
          ["b", "yy"],
        ],
      ),
    ).toBe("A      LONG\n\u001b[32mgreen\u001b[0m  x\nb      yy")
  })

  test("what somebody else wrote cannot steer the terminal or break a line", () => {
    const shown = table(["A"], [["evil\u001b]0;title\u0007\u001b[2Jx\ny\u009b31m"]])
    expect(shown).toBe("A\nevil␛]0;title ␛[2Jx y 31m")
  })

  test("what is not there is not shown", () => {
    expect(record({ name: "x", key: undefined, longer: "y" })).toBe("name:   x\nlonger: y")
  })

  test("sizes and times", () => {
    expect([0, 1023, 1536, 2 ** 30, 200 * 2 ** 20].map(bytesText)).toEqual([
      "0 B",
      "1023 B",
      "1.5 KB",
      "1 GB",
      "200 MB",
    ])
    expect([0, 59_000, 61_000, 7_200_000, 3 * 86_400_000, -5].map(durationText)).toEqual([
      "0s",
      "59s",
      "1m",
      "2h",
      "3d",
      "0s",
    ])
  })
})
