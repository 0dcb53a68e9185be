type Json = Record<string, unknown>

/** Schemas refer to each other in circles now and then. */
const depthMax = 8

/** A value that fits a schema: its own example where it has one; where not, what is required and what has an example. */
export function exampleOf(schema: Json, components: Json, depth = 0): unknown {
  const told = (schema["examples"] as unknown[] | undefined)?.[0] ?? schema["example"]
  if (told !== undefined) return told
  if (depth > depthMax) return null
  const inner = (next: unknown): unknown => exampleOf((next ?? {}) as Json, components, depth + 1)
  if (typeof schema["$ref"] === "string") return inner(components[schema["$ref"].split("/").at(-1) ?? ""])
  if ("const" in schema) return schema["const"]
  if ("default" in schema) return schema["default"]
  if (Array.isArray(schema["enum"])) return schema["enum"][0]
  const [choice] = (schema["anyOf"] ?? schema["oneOf"] ?? schema["allOf"] ?? []) as unknown[]
  if (choice !== undefined) return inner(choice)
  return schema["type"] === "object" ? objectOf(schema, components, inner) : plain(schema, inner)
}

function plain(schema: Json, inner: (next: unknown) => unknown): unknown {
  const type = schema["type"]
  if (type === "array") return Number(schema["minItems"] ?? 0) > 0 ? [inner(schema["items"])] : []
  if (type === "string") return textOf(schema)
  if (type === "integer" || type === "number") return Number(schema["minimum"] ?? 0)
  if (type === "boolean") return false
  return null
}

function objectOf(schema: Json, components: Json, inner: (next: unknown) => unknown): Json {
  const required = new Set(schema["required"] as string[] | undefined)
  const fields = Object.entries((schema["properties"] ?? {}) as Record<string, Json>)
  const shown = fields.filter(([name, field]) => required.has(name) || hasExample(field, components))
  return Object.fromEntries(shown.map(([name, field]) => [name, inner(field)]))
}

function hasExample(schema: Json, components: Json): boolean {
  const name = typeof schema["$ref"] === "string" ? schema["$ref"].split("/").at(-1) : undefined
  return "examples" in schema || (name !== undefined && "examples" in ((components[name] ?? {}) as Json))
}

const formats: Readonly<Record<string, string>> = { "date-time": "2026-11-15T12:00:00.000Z" }

function textOf({ format, minLength = 0 }: Json): string {
  return formats[String(format)] ?? "text".padEnd(Number(minLength), "x")
}
