import { homedir } from "node:os"
import { Validator } from "@seriousme/openapi-schema-validator"
import { publicCalls } from "@warren/protocol/control-plane.ts"
import { expect, test } from "vitest"
import { generatedFiles } from "./files.ts"
import { limitsOf, typeOf } from "./schema.ts"

const files = await generatedFiles()
const textOf = (path: string): string => files.get(path) ?? ""

test("the same comes out every time", async () => {
  expect([...(await generatedFiles())]).toEqual([...files])
})

test("the OpenAPI document is a valid one", async () => {
  const { valid, errors } = await new Validator().validate(textOf("docs/reference/openapi.json"))
  expect(errors).toBeUndefined()
  expect(valid).toBe(true)
})

test("every call and feed is in the reference, with what it is for", () => {
  for (const [name, { doc }] of Object.entries(publicCalls)) {
    expect(textOf("docs/reference/api.md")).toContain(`## ${name}\n\n${doc}\n`)
  }
})

test("every link to a type leads somewhere", () => {
  const page = textOf("docs/reference/api.md")
  const headings = new Set([...page.matchAll(/^#+ (.+)$/gm)].map((match) => match[1]?.toLowerCase()))
  for (const [, anchor] of page.matchAll(/\]\(#([^)]+)\)/g)) expect(headings).toContain(anchor)
})

test("nothing tells on whose machine it was made", () => {
  expect(textOf("docs/reference/settings.md")).toContain("`~/.local/share/warren`")
  for (const text of files.values()) expect(text).not.toContain(`${homedir()}/.`)
})

test("types and limits in words", () => {
  expect(typeOf({ type: "array", items: { anyOf: [{ type: "string" }, { $ref: "#/$defs/Health" }] } })).toBe(
    "(string | [Health](#health))[]",
  )
  expect(typeOf({ type: "object", properties: { a: { type: "integer" } } })).toBe("{ a?: integer }")
  expect(limitsOf({ type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER })).toBe("at least 1")
  expect(limitsOf({ type: "string", maxLength: 8, pattern: "^a" })).toBe("up to 8 characters; `^a`")
})
