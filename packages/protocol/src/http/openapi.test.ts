import { Validator } from "@seriousme/openapi-schema-validator"
import { describe, expect, test } from "vitest"
import { z } from "zod"
import { contract, type Contract } from "../contract.ts"
import { publicCalls } from "../control-plane.ts"
import { userPlane } from "../user-plane.ts"
import { openApi } from "./openapi.ts"
import { httpOf } from "./path.ts"
import { streamTable } from "../testing/http-system.ts"

const Part = z.object({ n: z.int() }).meta({ id: "Part" })
const Thing = z.object({ id: z.string(), parts: z.array(Part), first: Part.optional() }).meta({ id: "Thing" })
const table = contract({
  "thing.get": {
    since: 1,
    http: "GET /v1/things/{id}",
    doc: "Get.",
    in: z.object({ id: z.string(), depth: z.coerce.number().default(1) }),
    out: Thing,
  },
  "thing.drop": {
    since: 1,
    http: "DELETE /v1/things/{id}",
    doc: "Drop.",
    in: z.object({ id: z.string() }),
    out: z.object({}),
  },
  "thing.make": {
    since: 1,
    http: "POST /v1/things",
    doc: "Make.",
    in: z.object({ name: z.string(), part: Part.optional() }),
    out: Thing,
  },
  "thing.poke": {
    since: 1,
    http: "POST /v1/things/{id}/poke",
    doc: "Poke.",
    in: z.object({ id: z.string() }),
    out: z.unknown(),
  },
  "thing.follow": {
    since: 1,
    http: "GET /v1/things/{id}/follow",
    doc: "Follow.",
    in: z.object({ id: z.string(), after: z.int().optional() }),
    each: Thing,
  },
  "thing.hidden": { since: 1, doc: "Not over HTTP.", in: z.object({}), out: z.object({ secret: z.string() }) },
})

type Operation = {
  parameters: { name: string; in: string; required: boolean }[]
  requestBody?: { content: Record<string, { schema: unknown }> }
}
type ExampledOperation = {
  parameters: { name: string; in: string; example?: unknown }[]
  requestBody?: { content: Record<string, { example?: Record<string, unknown> }> }
}
type StreamOperation = Operation & { responses: Record<string, { content?: Record<string, unknown> }> }
const operations = (document: Record<string, unknown>): Record<string, Record<string, Operation>> =>
  document["paths"] as Record<string, Record<string, Operation>>

describe("openApi", () => {
  test.each<[string, Contract]>([
    ["the user plane", userPlane],
    ["everything at the public door", publicCalls],
    ["a contract with everything in it", table],
    ["streams", streamTable],
    ["nothing", contract({})],
  ])("is a valid document: %s", async (_, from) => {
    const document = openApi(from, { version: "1.2.3" })
    const { valid, errors } = await new Validator().validate(structuredClone(document))
    expect(errors).toBeUndefined()
    expect(valid).toBe(true)
  })

  test("every example of a request is one that would be taken", () => {
    const document = openApi(publicCalls, { version: "1.2.3" })
    for (const [name, entry] of Object.entries<Contract[string]>(publicCalls)) {
      if (!entry.http) continue
      const { method, path } = httpOf(entry.http)
      const operation = operations(document)[path]?.[method.toLowerCase()] as ExampledOperation
      const inPlaces = operation.parameters.filter((one) => one.in !== "header" && "example" in one)
      const given = Object.fromEntries(inPlaces.map((one) => [one.name, one.example]))
      const body = { ...operation.requestBody?.content["application/json"]?.example }
      // Its text is taken over HTTP only.
      const stdin = typeof body["stdin"] === "string" ? { stdin: true } : {}
      const { error } = entry.in.safeParse({ ...given, ...body, ...stdin })
      expect({ name, issues: error?.issues ?? [] }).toEqual({ name, issues: [] })
    }
  })

  test("a broken document would be noticed", async () => {
    const document = openApi(table, { version: "1.2.3" })
    const { valid } = await new Validator().validate({ ...document, paths: { "no-slash": { get: 5 } } })
    expect(valid).toBe(false)
  })

  test("every reference leads somewhere", () => {
    for (const from of [userPlane, table] as Contract[]) {
      const document = openApi(from, { version: "1" })
      const names = Object.keys((document["components"] as { schemas: object }).schemas)
      const references = [...JSON.stringify(document).matchAll(/"\$ref\\?":\\?"([^"\\]+)/g)].map(
        (match) => match[1] ?? "",
      )
      expect(references.length).toBeGreaterThan(0)
      for (const reference of references)
        expect(names.map((name) => `#/components/schemas/${name}`)).toContain(reference)
    }
  })

  test("puts each field where it is read from", () => {
    const paths = operations(openApi(table, { version: "1" }))
    expect(Object.keys(paths)).toEqual([
      "/v1/things/{id}",
      "/v1/things",
      "/v1/things/{id}/poke",
      "/v1/things/{id}/follow",
    ])
    expect(Object.keys(paths["/v1/things/{id}"] ?? {})).toEqual(["get", "delete"])
    expect(paths["/v1/things/{id}"]?.["get"]?.parameters).toMatchObject([
      { name: "id", in: "path", required: true },
      { name: "depth", in: "query", required: false },
    ])
    const make = paths["/v1/things"]?.["post"]
    expect([make?.parameters, make?.requestBody?.content["application/json"]?.schema]).toMatchObject([
      [],
      { required: ["name"], properties: { name: {}, part: {} } },
    ])
    expect(paths["/v1/things/{id}/poke"]?.["post"]?.requestBody).toBeUndefined()
  })

  test("says what streams take and give", () => {
    const paths = operations(openApi(streamTable, { version: "1" })) as Record<string, Record<string, StreamOperation>>
    const { get, put } = paths["/v1/blobs/{name}"] ?? {}
    expect(get?.parameters.map(({ name }) => name)).toEqual(["name", "offset", "limit", "Range"])
    expect(Object.keys(get?.responses ?? {})).toEqual(["200", "206", "416", "default"])
    expect(Object.keys(get?.responses["200"]?.content ?? {})).toEqual(["application/octet-stream"])
    expect(Object.keys(put?.requestBody?.content ?? {})).toEqual(["application/octet-stream"])
    expect(put?.parameters.map(({ name, in: place }) => [name, place])).toEqual([
      ["name", "path"],
      ["bytesMax", "query"],
    ])
    const run = paths["/v1/tools/{tool}/run"]
    expect(Object.keys(run?.["post"]?.responses["200"]?.content ?? {})).toEqual([
      "application/json",
      "text/event-stream",
    ])
    expect(run?.["post"]?.requestBody?.content["application/json"]?.schema).toMatchObject({
      properties: { stdin: { anyOf: [{ type: "string" }, { type: "boolean" }] } },
    })
    expect(Object.keys(run?.["get"]?.responses ?? {})).toEqual(["101", "default"])
  })

  test("does not tell what is not reached over HTTP", () => {
    expect(JSON.stringify(openApi(table, { version: "1" }))).not.toContain("secret")
  })
})

test("httpOf takes a route apart", () => {
  expect(httpOf("GET /a/{one}/b/{two}")).toEqual({
    method: "GET",
    path: "/a/{one}/b/{two}",
    parameters: ["one", "two"],
  })
  expect(httpOf("POST /a")).toEqual({ method: "POST", path: "/a", parameters: [] })
})
