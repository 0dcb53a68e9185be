import { Fault } from "@warren/base/fault.ts"
import fc from "fast-check"
import { expect, test } from "vitest"
import { FaultData, wireFault } from "./fault.ts"

test("any fault fits the wire, whatever its texts are, and short ones arrive whole", () => {
  const text = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.string().map((part) => (part || "x").repeat(20_000)),
  )
  fc.assert(
    fc.property(
      text,
      fc.option(text, { nil: undefined }),
      fc.option(text, { nil: undefined }),
      (message, hint, subject) => {
        const data = wireFault(new Fault("limit", message, { hint, subject }))
        expect(FaultData.parse(JSON.parse(JSON.stringify(data)))).toEqual(data)
        if (message.length <= 16_384) expect(data.message).toBe(message)
        else expect(data.message.length).toBe(16_384)
      },
    ),
    { numRuns: 50 },
  )
})

test("a code that a newer peer made up reads as `internal`", () => {
  expect(FaultData.parse({ code: "teapot", message: "short" })).toEqual({ code: "internal", message: "short" })
})
