/** The part of JSON Schema that our wires use. */
export interface Schema {
  readonly $ref?: string
  readonly $defs?: Readonly<Record<string, Schema>>
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: Schema | boolean
  readonly description?: string
  readonly default?: unknown
  readonly format?: string
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
  readonly exclusiveMaximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
}

type Refer = (name: string) => string

/** A schema in the words of TypeScript, with the named ones as links to their section, or as `refer` has them. */
export function typeOf(schema: Schema, refer: Refer = link): string {
  const inner = (one: Schema): string => typeOf(one, refer)
  if (schema.$ref !== undefined) return refer(schema.$ref.slice(schema.$ref.lastIndexOf("/") + 1))
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ")
  const union = schema.anyOf ?? schema.oneOf
  if (union) return union.map(inner).join(" | ")
  if (schema.allOf) return schema.allOf.map(inner).join(" & ")
  if (schema.type === "array") return arrayOf(inner(schema.items ?? {}))
  if (schema.type === "object") return objectOf(schema, inner)
  if (typeof schema.type === "object") return schema.type.join(" | ")
  return schema.format ?? schema.type ?? "any JSON"
}

function arrayOf(type: string): string {
  return type.includes(" ") && !type.startsWith("{") ? `(${type})[]` : `${type}[]`
}

function objectOf(schema: Schema, inner: (one: Schema) => string): string {
  const fields = Object.entries(schema.properties ?? {})
  if (fields.length > 0) {
    const isOptional = (name: string): boolean => !schema.required?.includes(name)
    return `{ ${fields.map(([name, field]) => `${name}${isOptional(name) ? "?" : ""}: ${inner(field)}`).join(", ")} }`
  }
  const values = schema.additionalProperties
  return typeof values === "object" ? `{ [name]: ${inner(values)} }` : "{}"
}

const link = (name: string): string => `[${name}](#${name.toLowerCase()})`

/** The bounds a value must keep to, in one short line. */
export function limitsOf(schema: Schema): string {
  const parts = [
    range(bound(schema.minimum), bound(schema.maximum), ""),
    schema.exclusiveMinimum === undefined ? "" : `over ${schema.exclusiveMinimum}`,
    schema.exclusiveMaximum === undefined ? "" : `under ${schema.exclusiveMaximum}`,
    range(schema.minLength, schema.maxLength, " characters"),
    range(schema.minItems, schema.maxItems, " items"),
    // The pattern of a known format says in a hundred characters what its name says in one word.
    schema.pattern !== undefined && schema.format === undefined ? `\`${schema.pattern}\`` : "",
  ]
  return parts.filter((part) => part !== "").join("; ")
}

/** A whole number that JavaScript can hold is what `integer` means already. */
const bound = (value: number | undefined): number | undefined =>
  Math.abs(value ?? 0) >= Number.MAX_SAFE_INTEGER ? undefined : value

function range(min: number | undefined, max: number | undefined, of: string): string {
  if (min === undefined && max === undefined) return ""
  if (min === undefined) return `up to ${max}${of}`
  return max === undefined ? `at least ${min}${of}` : `${min} to ${max}${of}`
}
