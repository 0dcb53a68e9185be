import { describe, expect, test } from "vitest"
import { wayOut } from "./network.ts"

describe("what a sandbox may reach", () => {
  const list = (allow: string[]): object => ({ mode: "proxy", access: "list", allow })
  test.each([
    ["everything unless said", {}, undefined, { mode: "proxy", access: "all-public", allow: [] }],
    ["nothing without the internet", {}, false, list([])],
    ["what is allowed, without the internet", { allowOut: ["a.example"] }, false, list(["a.example"])],
    [
      "only what is allowed, where all is denied",
      { allowOut: ["*.a.example", "1.2.3.4/32"], denyOut: ["0.0.0.0/0"] },
      undefined,
      list(["*.a.example", "1.2.3.4"]),
    ],
    [
      "all that is allowed wins over all that is denied",
      { allowOut: ["0.0.0.0/0"], denyOut: ["0.0.0.0/0"] },
      true,
      { mode: "proxy", access: "all-public", allow: [] },
    ],
    [
      "more than what is public",
      { allowOut: ["10.0.0.5"] },
      undefined,
      { mode: "proxy", access: "all-public", allow: ["10.0.0.5"] },
    ],
  ])("%s", (_, egress, internet, wanted) => expect(wayOut(egress, internet)).toEqual(wanted))

  test.each([
    ["one address alone cannot be denied", { denyOut: ["8.8.8.8"] }],
    ["a range cannot be allowed", { allowOut: ["10.0.0.0/8"], denyOut: ["0.0.0.0/0"] }],
    ["requests are not changed", { rules: { "a.example": [{ transform: {} }] } }],
    ["there is one way out", { egressProxy: { address: "proxy:1080" } }],
  ])("%s: refused, rather than not kept to", (_, egress) => {
    expect(() => wayOut(egress, undefined)).toThrow(expect.objectContaining({ code: "unsupported" }))
  })
})
