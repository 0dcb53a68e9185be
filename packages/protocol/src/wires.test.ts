import { readFile } from "node:fs/promises"
import { describe, expect, test } from "vitest"
import { z } from "zod"
import { contract, type Contract } from "./contract.ts"
import { TokenScope } from "./token-scope.ts"
import { describeContract, describeWires } from "./wires.ts"

const lockFile = new URL("../wire.lock.json", import.meta.url)
const locked = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

describe("the wires", () => {
  test("are the ones in wire.lock.json", async () => {
    const kept = await readFile(lockFile, "utf8")
    expect(kept, "a wire has changed. If that was meant, and the old side still works, run: npm run generate").toBe(
      locked(describeWires()),
    )
  })

  test("every entry says since when it is there and what it does", () => {
    const { userPlane, controlPlane } = describeWires() as Record<
      string,
      Record<string, { since: number; scope: string }>
    >
    const entries = Object.entries({ ...userPlane, ...controlPlane })
    expect(entries.length).toBeGreaterThan(0)
    for (const [name, { since, scope }] of entries) {
      expect([...TokenScope.options, "open"]).toContain(scope)
      expect(name).toMatch(/^[a-z]+\.[a-zA-Z]+$/)
      expect(since).toBeGreaterThanOrEqual(1)
    }
  })

  const before = {
    since: 1,
    http: "GET /x/{id}",
    doc: "A call.",
    in: z.object({ id: z.string() }),
    out: z.object({ n: z.int() }),
  } as const
  test.each<[string, Contract]>([
    [
      "an input field",
      contract({ "x.get": { ...before, in: z.object({ id: z.string(), more: z.string().optional() }) } }),
    ],
    ["an input limit", contract({ "x.get": { ...before, in: z.object({ id: z.string().max(5) }) } })],
    ["a default", contract({ "x.get": { ...before, in: z.object({ id: z.string().default("a") }) } })],
    ["an output type", contract({ "x.get": { ...before, out: z.object({ n: z.string() }) } })],
    ["an output field that is gone", contract({ "x.get": { ...before, out: z.object({}) } })],
    [
      "a call that became a feed",
      contract({ "x.get": { since: 1, http: before.http, doc: "", in: before.in, each: before.out } }),
    ],
    ["a path", contract({ "x.get": { ...before, http: "GET /y/{id}" } })],
    ["a name", contract({ "x.read": before })],
    ["what one must be allowed to do", contract({ "x.get": { ...before, scope: "exec" } })],
    ["a version", contract({ "x.get": { ...before, since: 2 } })],
  ])("a change is noticed: %s", (_, after) => {
    expect(locked(describeContract(after))).not.toBe(locked(describeContract({ "x.get": before })))
  })

  test("new words for the same thing are no change", () => {
    const after = contract({ "x.get": { ...before, doc: "Other words." } })
    expect(locked(describeContract(after))).toBe(locked(describeContract({ "x.get": before })))
  })
})
