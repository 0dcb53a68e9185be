import { expect, test } from "vitest"
import { z } from "zod"
import { describeIssues } from "./issues.ts"

const schema = z.object({ a: z.object({ b: z.int() }), c: z.string(), d: z.string(), e: z.string(), f: z.string() })
const said = (value: unknown): string => describeIssues(schema.safeParse(value).error ?? new z.ZodError([]))

test("says where and what, and how much more there is", () => {
  expect(said({ a: { b: 1.5 }, c: "", d: "", e: "", f: "" })).toMatch(/^a\.b: /)
  expect(said(5)).not.toContain(":  ")
  expect(said({}).split("; ").length).toBe(4)
  expect(said({})).toMatch(/; and 2 more$/)
})
