import { z } from "zod"

type Node = Record<string, unknown>

/**
 * The JSON Schema of a tool's input, whole in itself: many clients hand it to a model, or to a model's maker, and few of
 * those follow references.
 */
export function inputSchemaOf(input: z.ZodObject): { readonly type: "object" } {
  const { $schema: _, $defs = {}, ...schema } = z.toJSONSchema(input, { io: "input", unrepresentable: "any" }) as Node
  return inlined(schema, $defs as Node) as { readonly type: "object" }
}

const refersTo = /^#\/\$defs\/(.*)$/

/** What holds itself, as JSON does, is anything from the second time on. */
function inlined(value: unknown, definitions: Node): unknown {
  if (Array.isArray(value)) return value.map((one) => inlined(one, definitions))
  if (typeof value !== "object" || value === null) return value
  const { $ref, id, ...rest } = value as Node
  const name = typeof $ref === "string" ? (refersTo.exec($ref)?.[1] ?? "") : undefined
  const { id: _, ...meant } = (name === undefined ? {} : (definitions[name] ?? {})) as Node
  const left = name === undefined ? definitions : { ...definitions, [name]: {} }
  // The name of a shape says nothing to a model; a property that is called `id` is a shape, and stays.
  const named = id === undefined || typeof id === "string" ? {} : { id }
  const entries = Object.entries({ ...meant, ...named, ...rest })
  return typed(Object.fromEntries(entries.map(([key, one]) => [key, inlined(one, left)])))
}

/** One of several objects is an object: said, it spares a reader to look into each. */
function typed(node: Node): Node {
  const choices = (node["oneOf"] ?? node["anyOf"]) as Node[] | undefined
  const isObject = Array.isArray(choices) && choices.every((choice) => choice["type"] === "object")
  return isObject && node["type"] === undefined ? { type: "object", ...node } : node
}
