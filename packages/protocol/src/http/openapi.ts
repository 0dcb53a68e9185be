import { faultCodes } from "@warren/base/fault.ts"
import { z } from "zod"
import { isCall, isStream, requestKeyCharsMax, type Contract, type Entry, type Feed } from "../contract.ts"
import { FaultData } from "../fault.ts"
import { bytesBody, streamAnswers, streamParameters, webSocketOperation, withStdinText } from "./openapi-stream.ts"
import { exampleOf } from "./openapi-example.ts"
import { httpOf } from "./path.ts"

interface OpenApiOptions {
  readonly version: string
}

type Json = Record<string, unknown>

/** An OpenAPI 3.1 document of everything in a contract that is reached over HTTP. */
export function openApi(contract: Contract, options: OpenApiOptions): Json {
  const components: Json = {}
  const paths: Record<string, Json> = {}
  for (const [name, entry] of Object.entries(contract)) {
    if (!entry.http) continue
    const { method, path } = httpOf(entry.http)
    const described = operation(name, entry, components)
    // A WebSocket begins with a GET, whatever the method of the plain request is.
    const isTalk = isStream(entry) && entry.body === "result" && method !== "GET"
    const talk = isTalk ? { get: webSocketOperation(described) } : {}
    paths[path] = { ...talk, ...paths[path], [method.toLowerCase()]: described }
  }
  components["Error"] = errorSchema(components)
  return {
    openapi: "3.1.0",
    info: {
      title: "Warren",
      version: options.version,
      description: "A private computer for every agent, on a machine you own.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    security: [{ bearer: [] }, { cookie: [] }],
    paths,
    components: { schemas: components, securitySchemes },
  }
}

/** A token with the scopes listed, or a browser that is signed in. */
const securitySchemes = {
  bearer: { type: "http", scheme: "bearer" },
  cookie: { type: "apiKey", in: "cookie", name: "warren-sign-in", description: "`__Host-warren-sign-in` with TLS." },
}

function operation(name: string, entry: Entry, components: Json): Json {
  const { method, parameters } = httpOf(entry.http ?? "GET /")
  const input = schemaOf(entry.in, "input", components)
  const fields = Object.entries((input["properties"] ?? {}) as Record<string, Json>)
  const required = new Set((input["required"] ?? []) as string[])
  const inPath = fields.filter(([field]) => parameters.includes(field))
  const others = fields.filter(([field]) => !parameters.includes(field))
  const isBytes = isStream(entry) && entry.body === "bytes"
  const hasBody = method !== "GET" && method !== "DELETE" && others.length > 0 && !isBytes
  const parameter =
    (place: string, isRequired: (field: string) => boolean) =>
    ([field, schema]: [string, Json]) => ({
      name: field,
      in: place,
      required: isRequired(field),
      schema,
      ...(isRequired(field) ? { example: exampleOf(schema, components) } : {}),
    })
  const inQuery = hasBody ? [] : others.map(parameter("query", (field) => required.has(field)))
  const body = {
    type: "object",
    properties: withStdinText(entry, Object.fromEntries(others)),
    required: others.map(([field]) => field).filter((field) => required.has(field)),
  }
  return {
    operationId: name,
    ...(entry.scope && { security: entry.scope === "open" ? [] : [{ bearer: [entry.scope] }, { cookie: [] }] }),
    summary: entry.doc,
    tags: [name.split(".")[0]],
    parameters: [
      ...inPath.map(parameter("path", () => true)),
      ...inQuery,
      ...streamParameters(entry),
      ...(isCall(entry) && entry.makes ? [keyParameter] : []),
    ],
    ...(hasBody
      ? { requestBody: { required: true, content: { "application/json": exampled(body, components) } } }
      : {}),
    ...(isBytes && method !== "GET" ? { requestBody: bytesBody } : {}),
    responses: { ...answers(entry, components), default: failure },
  }
}

function answers(entry: Entry, components: Json): Json {
  if (isStream(entry)) return streamAnswers(entry, schemaOf(entry.down, "output", components))
  if (!isCall(entry)) return { "200": feedAnswer(entry, components) }
  return { [entry.makes ? "201" : "200"]: jsonAnswer(schemaOf(entry.out, "output", components), components) }
}

const keyParameter = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description:
    "A name of yours for this request. Asked again with it within a day, the answer is the same and nothing more is made; with another body it is a conflict.",
  schema: { type: "string", minLength: 1, maxLength: requestKeyCharsMax },
  example: "b7c1a9f0-1d3e-4c55-9a53-0f6b2f2f8f11",
}

function jsonAnswer(schema: Json, components: Json): Json {
  return { description: "Done.", content: { "application/json": exampled(schema, components) } }
}

function exampled(schema: Json, components: Json): Json {
  return { schema, example: exampleOf(schema, components) }
}

function feedAnswer(entry: Feed, components: Json): Json {
  // Registered, so that the text can name it: OpenAPI 3.1 cannot describe the items of an event stream.
  const item = schemaOf(entry.each, "output", components)
  return {
    description: `Server-sent events: \`item\` with a number as its id, then \`end\` or \`fault\`. Each item: ${JSON.stringify(item)}`,
    content: { "text/event-stream": { schema: { type: "string" } } },
  }
}

const failure = {
  description: `Refused or failed: ${Object.keys(faultCodes).join(", ")}.`,
  content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
}

function errorSchema(components: Json): Json {
  const fault = schemaOf(FaultData, "output", components)
  return {
    type: "object",
    required: ["error"],
    properties: { error: { allOf: [fault, { type: "object", properties: { requestId: { type: "string" } } }] } },
  }
}

/** A schema as JSON Schema; what has an id of its own goes to the shared components and is referred to. */
function schemaOf(schema: z.ZodType, io: "input" | "output", components: Json): Json {
  const {
    $schema: _,
    $defs = {},
    ...own
  } = z.toJSONSchema(schema, { io, reused: "inline", unrepresentable: "any" }) as Json
  for (const [name, definition] of Object.entries($defs as Json)) components[name] = relocate(definition)
  const { id, ...rest } = relocate(own) as Json
  if (typeof id !== "string") return rest
  components[id] = rest
  return { $ref: `#/components/schemas/${id}` }
}

function relocate(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(relocate)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) =>
      key === "$ref" && typeof inner === "string"
        ? [key, inner.replace("#/$defs/", "#/components/schemas/")]
        : [key, relocate(inner)],
    ),
  )
}
