import { expect, test } from "vitest"
import { z } from "zod"
import { inputSchemaOf } from "./input-schema.ts"
import { tools } from "./tools.ts"

test("every tool says what it is for, takes an object, and points at nothing outside of itself", () => {
  for (const { name, description, inputSchema } of tools) {
    expect(name).toMatch(/^[a-z]+(_[a-z]+)+$/)
    expect(description.length).toBeGreaterThan(20)
    expect(inputSchema.type).toBe("object")
    expect(JSON.stringify(inputSchema)).not.toContain("$ref")
  }
  expect(new Set(tools.map(({ name }) => name)).size).toBe(tools.length)
})

test("a shape with a name is written where it is used, and one that holds itself ends", () => {
  const Named = z.object({ id: z.string().meta({ description: "its id" }) }).meta({ id: "SomeNamedShape" })
  const schema = inputSchemaOf(z.object({ one: Named, all: z.json() })) as unknown as {
    properties: Record<string, Record<string, unknown>>
  }
  expect(schema.properties["one"]).toMatchObject({
    type: "object",
    properties: { id: { type: "string", description: "its id" } },
  })
  expect(schema.properties["one"]).not.toHaveProperty("id")
  expect(JSON.stringify(schema)).not.toContain("$ref")
})

test("one of several objects is an object", () => {
  const either = z.union([z.object({ a: z.string() }), z.object({ b: z.string() })])
  const schema = inputSchemaOf(z.object({ either })) as unknown as { properties: { either: object } }
  expect(schema.properties.either).toMatchObject({ type: "object" })
})
