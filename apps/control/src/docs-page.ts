import { createHash } from "node:crypto"

type Json = Record<string, unknown>

interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly tags: readonly string[]
  readonly parameters: readonly {
    readonly name: string
    readonly in: string
    readonly required: boolean
    readonly schema: Json
  }[]
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { readonly schema: Json; readonly example?: unknown }>>
  }
  readonly responses: Readonly<Record<string, { readonly description?: string; readonly content?: Json }>>
}

interface Listed extends Operation {
  readonly method: string
  readonly path: string
}

const style = `body{font:15px/1.5 system-ui;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}a{color:#8bf}}
code,pre{font:13px/1.45 ui-monospace,monospace}pre{overflow:auto;padding:.6rem .8rem;border:1px solid #8884;border-radius:.3rem}
summary{cursor:pointer;padding:.25rem 0}details{border-bottom:1px solid #8883}details[open]{padding-bottom:.8rem}
table{border-collapse:collapse}td{padding:.15rem .9rem .15rem 0;vertical-align:top}nav a{margin-right:.8rem}
b{display:inline-block;min-width:4.2rem;font:600 12px ui-monospace,monospace}`

const introduction = `<p>Send <code>Authorization: Bearer TOKEN</code>. What is not in the path goes in the query of a GET or DELETE and in the
JSON body of the rest. A failure is <code>{"error": {"code", "message", "hint", "requestId"}}</code>. What makes something takes an
<code>Idempotency-Key</code>. Lists go on with <code>cursor</code>. Feeds are server-sent events and go on with
<code>Last-Event-ID</code>. For machines: <a href="/v1/openapi.json">openapi.json</a>.</p>`

/** The API for people, made of the same document that machines read. It has no script and asks nobody else for anything. */
export function docsPage(document: Json): string {
  const operations = listed(document)
  const tags = [...new Set(operations.map(({ tags: [tag = ""] }) => tag))].toSorted()
  const links = tags.map((tag) => `<a href="#${escape(tag)}">${escape(tag)}</a>`).join(" ")
  const sections = tags.map((tag) =>
    section(
      tag,
      operations.filter(({ tags: [own] }) => own === tag),
    ),
  )
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>The API of Warren</title>
<meta name="viewport" content="width=device-width"><style>${style}</style><h1>The API</h1>${introduction}<nav>${links}</nav>
${sections.join("\n")}</html>`
}

export const docsPolicy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'`,
  "form-action 'none'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join("; ")

function listed(document: Json): Listed[] {
  const paths = Object.entries(document["paths"] as Record<string, Record<string, Operation>>)
  return paths.flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
  )
}

function section(tag: string, operations: readonly Listed[]): string {
  return `<h2 id="${escape(tag)}">${escape(tag)}</h2>${operations.map(shown).join("")}`
}

function shown(operation: Listed): string {
  const { operationId, method, path, summary, responses } = operation
  const [answer] = Object.entries(responses)
  const example = (answer?.[1].content?.["application/json"] as { example?: unknown } | undefined)?.example
  return `<details id="${escape(operationId)}"><summary><b>${method}</b> <code>${escape(path)}</code> ${escape(summary)}</summary>
${fields(operation)}<pre>${escape(curl(operation))}</pre><p>${escape(answer?.[0] ?? "")}: ${escape(answer?.[1].description ?? "")}</p>
${example === undefined ? "" : `<pre>${escape(JSON.stringify(example, null, 2))}</pre>`}</details>`
}

function fields({ parameters, requestBody }: Operation): string {
  const body = requestBody?.content["application/json"]?.schema
  const required = new Set((body?.["required"] ?? []) as string[])
  const inBody = Object.entries((body?.["properties"] ?? {}) as Record<string, Json>).map(([name, schema]) => {
    return { name, in: "body", required: required.has(name), schema }
  })
  const rows = [...parameters, ...inBody].map(({ name, in: place, required: isRequired, schema }) => {
    const cells = [`<code>${escape(name)}</code>${isRequired ? " *" : ""}`, place, kindOf(schema), wordsOf(schema)]
    return `<tr>${cells.map((cell) => `<td>${cell}</td>`).join("")}</tr>`
  })
  return rows.length === 0 ? "" : `<table>${rows.join("")}</table>`
}

function kindOf(schema: Json): string {
  const { $ref, type, enum: choices, anyOf, oneOf } = schema
  if (typeof $ref === "string") return escape($ref.split("/").at(-1) ?? "")
  if (Array.isArray(choices)) return escape(choices.join(" | "))
  const several = (anyOf ?? oneOf) as Json[] | undefined
  return several ? several.map(kindOf).join(" | ") : escape(typeof type === "string" ? type : "any")
}

function wordsOf({ description, default: usual }: Json): string {
  const said = typeof description === "string" ? escape(description) : ""
  return usual === undefined ? said : `${said} <code>${escape(JSON.stringify(usual))}</code>`
}

/** The request as one could type it. */
function curl({ method, path, requestBody, parameters }: Listed): string {
  const examples = new Map(parameters.map((one) => [one.name, (one as { example?: unknown }).example]))
  const place = path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(examples.get(name) ?? name)),
  )
  const asked = parameters.filter((one) => one.in === "query" && one.required)
  const query = asked.map((one) => `${one.name}=${encodeURIComponent(String(examples.get(one.name)))}`).join("&")
  const body = requestBody?.content["application/json"]?.example
  const head = `curl -H "Authorization: Bearer $WARREN_TOKEN"${method === "GET" ? "" : ` -X ${method}`}`
  const data = requestBody
    ? ` \\\n  ${body === undefined ? "--data-binary @FILE" : `--json '${JSON.stringify(body)}'`}`
    : ""
  return `${head} "$WARREN_URL${place}${query === "" ? "" : `?${query}`}"${data}`
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;")
}
