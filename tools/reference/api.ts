import type { Contract } from "@warren/protocol/contract.ts"
import { publicCalls } from "@warren/protocol/control-plane.ts"
import { describeWires } from "@warren/protocol/wires.ts"
import { code, page, table } from "./markdown.ts"
import { limitsOf, typeOf, type Schema } from "./schema.ts"

interface Entry {
  readonly since: number
  readonly http: string | null
  readonly scope?: string
  readonly in: Schema
  readonly out?: Schema
  readonly each?: Schema
}

/** Every call and feed: what it is for, how it is reached, what goes in, what comes out. */
export function apiPage(): string {
  const { userPlane, controlPlane } = describeWires() as Record<string, Readonly<Record<string, Entry>>>
  const entries = { ...userPlane, ...controlPlane }
  const sections = Object.entries(entries).map(([name, entry]) => section(name, entry, publicCalls))
  return page("The API", "packages/protocol/src/{user,control}-plane.ts", [
    introduction,
    ...sections,
    types(Object.values(entries)),
  ])
}

const introduction = `Over HTTP, fields named in the path go there; the others go in the query of a GET or DELETE and in the JSON
body of the rest. Send \`Authorization: Bearer <token>\`. A failure is \`{"error": {"code", "message", "hint"}}\`, see
[faults](faults.md). A **call** has one answer. A **feed** is a stream of server-sent events (\`item\`, then \`end\` or
\`fault\`), numbered, so that a reader continues \`after\` the last one it saw. The same document for machines:
[openapi.json](openapi.json).`

function section(name: string, entry: Entry, contract: Contract): string {
  const kind = entry.each ? "Feed" : "Call"
  const route = entry.http === null ? "not over HTTP" : code(entry.http)
  const answer = entry.each ? `Each item: ${shown(entry.each)}` : `Answer: ${shown(entry.out ?? {})}`
  const parts = [
    `## ${name}`,
    contract[name]?.doc ?? "",
    `${kind}, ${route}, ${needed(entry)}, since wire version ${entry.since}.`,
    fields(entry.in),
    answer,
  ]
  return parts.join("\n\n")
}

function needed({ scope }: Entry): string {
  return scope === "open" ? "open to everybody" : `needs the scope ${code(scope ?? "")}`
}

function fields(schema: Schema): string {
  const rows = Object.entries(schema.properties ?? {}).map(([name, field]) => [
    code(name),
    typeOf(field),
    schema.required?.includes(name) ? "yes" : "",
    limitsOf(field),
    field.default === undefined ? "" : code(JSON.stringify(field.default)),
    field.description ?? "",
  ])
  return rows.length === 0 ? "No fields." : table(["field", "type", "required", "limits", "default", ""], rows)
}

/** A named type as its link; an object of its own as a table. */
function shown(schema: Schema): string {
  return schema.properties ? `an object\n\n${fields(schema)}` : typeOf(schema)
}

function types(entries: readonly Entry[]): string {
  const named = new Map<string, Schema>()
  for (const { in: input, out = {}, each = {} } of entries) {
    for (const { $defs = {} } of [input, out, each])
      for (const [name, schema] of Object.entries($defs)) named.set(name, schema)
  }
  const sections = [...named]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, schema]) => {
      const body = schema.properties ? fields(schema) : typeOf(schema)
      return [`### ${name}`, schema.description ?? "", body].filter((part) => part !== "").join("\n\n")
    })
  return sections.length === 0 ? "" : ["## Types", ...sections].join("\n\n")
}
