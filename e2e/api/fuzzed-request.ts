import type { Chance } from "./chance.ts"
import { anyBody, anyHeaders, anyText, anyValue } from "./nonsense.ts"

type Json = Record<string, unknown>

export interface Operation {
  readonly method: string
  readonly path: string
  readonly parameters: readonly {
    readonly name: string
    readonly in: string
    readonly required: boolean
    readonly schema: Json
  }[]
  readonly body: Json | "bytes" | undefined
}

export interface FuzzedRequest {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer | undefined
}

interface Surroundings {
  readonly chance: Chance
  readonly components: Json
  /** Names of what is really there, so that not everything ends at "there is no such". */
  known(field: string): string | undefined
}

/** Everything in an OpenAPI document that can be asked. */
export function operationsOf(document: Json): Operation[] {
  const paths = Object.entries(document["paths"] as Record<string, Record<string, Json>>)
  return paths.flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      parameters: (operation["parameters"] ?? []) as Operation["parameters"],
      body: bodyOf(operation["requestBody"] as { content?: Record<string, { schema: Json }> } | undefined),
    })),
  )
}

function bodyOf(request: { content?: Record<string, { schema: Json }> } | undefined): Operation["body"] {
  if (!request) return undefined
  return request.content?.["application/json"]?.schema ?? "bytes"
}

/** A request for it: as its schemas say, or with something wrong. */
export function fuzzed(operation: Operation, around: Surroundings): FuzzedRequest {
  const { chance } = around
  const isOff = chance.is(0.6)
  const fields = { ...Object.fromEntries(operation.parameters.flatMap((one) => parameter(one, around, isOff))) }
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    segment(textOf(fields[name] ?? ""), chance, isOff),
  )
  const query = new URLSearchParams()
  for (const { name, in: place } of operation.parameters) {
    if (place !== "query" || fields[name] === undefined) continue
    query.append(name, textOf(fields[name]))
    if (isOff && chance.is(0.05)) query.append(name, anyText(chance))
  }
  if (isOff && chance.is(0.1)) query.append(chance.one(["cursor", "limit", "after", "__proto__", "x"]), anyText(chance))
  const method =
    isOff && chance.is(0.08)
      ? chance.one(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"])
      : operation.method
  const search = query.toString().slice(0, 4_000)
  return {
    method,
    path: search === "" ? path : `${path}?${search}`,
    headers: isOff && chance.is(0.4) ? anyHeaders(chance) : { "content-type": "application/json" },
    body: method === "GET" || method === "HEAD" ? undefined : contentOf(operation, around, isOff),
  }
}

function parameter(one: Operation["parameters"][number], around: Surroundings, isOff: boolean): [string, unknown][] {
  const { chance } = around
  if (one.in === "header" || (!one.required && chance.is(0.5))) return []
  if (isOff && chance.is(0.2)) return [[one.name, anyText(chance)]]
  const known = chance.is(0.7) ? around.known(one.name) : undefined
  return [[one.name, known ?? valueFor(one.schema, around, isOff)]]
}

function textOf(value: unknown): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value)
}

function segment(value: string, chance: Chance, isOff: boolean): string {
  if (isOff && chance.is(0.05))
    return chance.one(["%00", "%ff", "%", "..%2f..", "%2e%2e", "a%2Fb", "%zz", "", "x".repeat(3_000)])
  return encodeURIComponent(Buffer.from(value.slice(0, 1_000)).toString())
}

function contentOf(operation: Operation, around: Surroundings, isOff: boolean): string | Buffer | undefined {
  const { chance } = around
  if (operation.body === "bytes") return chance.one(["", "content", "b".repeat(200_000)])
  if (operation.body === undefined) return chance.is(0.2) ? anyBody(chance, "{}") : undefined
  const json = JSON.stringify(valueFor(operation.body, around, isOff)) ?? "null"
  return isOff && chance.is(0.25) ? anyBody(chance, json) : json
}

const depthMax = 6

function valueFor(schema: Json, around: Surroundings, isOff: boolean, depth = 0): unknown {
  const { chance, components } = around
  if (isOff && chance.is(0.12)) return anyValue(chance)
  const inner = (next: unknown): unknown => valueFor((next ?? {}) as Json, around, isOff, depth + 1)
  if (depth > depthMax) return null
  if (typeof schema["$ref"] === "string") return inner(components[schema["$ref"].split("/").at(-1) ?? ""])
  const examples = schema["examples"] as unknown[] | undefined
  if (examples && chance.is(0.7)) return chance.one(examples)
  if ("const" in schema) return schema["const"]
  if (Array.isArray(schema["enum"])) return chance.one(schema["enum"] as unknown[])
  const choices = (schema["anyOf"] ?? schema["oneOf"] ?? schema["allOf"]) as unknown[] | undefined
  return choices ? inner(chance.one(choices)) : plain(schema, around, inner)
}

function plain(schema: Json, around: Surroundings, inner: (next: unknown) => unknown): unknown {
  const { chance } = around
  switch (schema["type"]) {
    case "object":
      return objectFor(schema, around, inner)
    case "array":
      return Array.from({ length: chance.below(4) }, () => inner(schema["items"]))
    case "string":
      return chance.one([
        "text",
        "a",
        "main",
        "web",
        "2026-11-15T12:00:00.000Z",
        "x".repeat(Number(schema["minLength"] ?? 1)),
      ])
    case "integer":
    case "number":
      return numberFor(schema, chance)
    case "boolean":
      return chance.is(0.5)
    default:
      return chance.one(["text", 1, null])
  }
}

function numberFor({ minimum = 0, maximum = 2 ** 53 - 1 }: Json, chance: Chance): number {
  const [least, most] = [Number(minimum), Number(maximum)]
  return chance.one([least, most, least - 1, most + 1, Math.min(most, least + chance.below(100))])
}

function objectFor(schema: Json, around: Surroundings, inner: (next: unknown) => unknown): Json {
  const { chance } = around
  const required = new Set((schema["required"] ?? []) as string[])
  const fields = Object.entries((schema["properties"] ?? {}) as Json)
  const shown = fields.filter(([name]) => (required.has(name) ? chance.is(0.97) : chance.is(0.35)))
  const made = shown.map(([name, field]) => [name, (chance.is(0.6) ? around.known(name) : undefined) ?? inner(field)])
  const extra = chance.is(0.1) ? { [chance.one(["extra", "constructor", "id", ""])]: anyValue(chance) } : {}
  return { ...(Object.fromEntries(made) as Json), ...extra }
}
