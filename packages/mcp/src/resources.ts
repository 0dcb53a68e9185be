import { Fault } from "@warren/base/fault.ts"
import type { ListResourcesResult, ReadResourceResult, ResourceTemplate } from "@modelcontextprotocol/sdk/types.js"
import { z } from "zod"
import type { Asking } from "./asking.ts"
import { wholeCharacters } from "./excerpt.ts"
import { feedLimits, readFeed } from "./feed-page.ts"

const fileBytesMax = 1024 * 1024

export const resourceTemplates: ResourceTemplate[] = [
  {
    name: "session",
    uriTemplate: "warren://{session}",
    description: "Everything about a session.",
    mimeType: "application/json",
  },
  {
    name: "file",
    uriTemplate: "warren://{session}/files/{+path}{?offset,limit}",
    description: `A file of a session by its absolute path, at most ${fileBytesMax} bytes at a time: \`_meta.nextOffset\` says where to go on.`,
  },
  {
    name: "feed",
    uriTemplate: "warren://{session}/feed{?after}",
    description: "What happened with the agent of a session after a number; `next` says where to go on.",
    mimeType: "application/json",
  },
]

const pageSize = 100

/** The sessions, each with its feed: files are too many to list. */
export async function listResources(asking: Asking, cursor: string | undefined): Promise<ListResourcesResult> {
  const page = await asking.call("session.list", { limit: pageSize, ...(cursor === undefined ? {} : { cursor }) })
  const resources = page.items.flatMap(({ name, state }) => [
    { uri: `warren://${name}`, name, title: `Session ${name} (${state})`, mimeType: "application/json" },
    { uri: `warren://${name}/feed`, name: `${name}/feed`, title: `Feed of ${name}`, mimeType: "application/json" },
  ])
  return { resources, ...(page.nextCursor === undefined ? {} : { nextCursor: page.nextCursor }) }
}

const whole = z.coerce.number().int().min(0).optional()
const Query = z.object({
  offset: whole,
  limit: whole.pipe(z.number().min(1).max(fileBytesMax).optional()),
  after: whole,
})

export async function readResource(asking: Asking, uri: string): Promise<ReadResourceResult> {
  const { session, path, query } = partsOf(uri)
  if (path === "") return jsonOf(uri, await asking.call("session.get", { id: session }))
  if (path === "/feed") {
    const page = await readFeed({ session, after: query.after ?? 0, limit: feedLimits.itemsMax, waitMs: 0 }, asking)
    return jsonOf(uri, page)
  }
  const file = /^\/files(\/.+)$/s.exec(path)?.[1]
  if (file === undefined) throw new Fault("not_found", `there is no resource ${uri.slice(0, 200)}`)
  return fileOf(asking, uri, { session, path: file, offset: query.offset ?? 0, limit: query.limit ?? fileBytesMax })
}

interface Part {
  readonly session: string
  readonly path: string
  readonly offset: number
  readonly limit: number
}

async function fileOf(asking: Asking, uri: string, part: Part): Promise<ReadResourceResult> {
  const { size } = await asking.call("file.stat", { session: part.session, path: part.path })
  const bytes = await asking.read(part)
  const isLast = part.offset + bytes.length >= size
  const shown = isLast ? bytes : bytes.subarray(0, wholeCharacters(bytes))
  const content = textIn(shown)
  const length = content === undefined ? bytes.length : shown.length
  const meta = isLast ? { size } : { size, nextOffset: part.offset + length }
  const common = { uri, _meta: meta }
  return {
    contents: [
      content === undefined
        ? { ...common, mimeType: "application/octet-stream", blob: bytes.toString("base64") }
        : { ...common, mimeType: "text/plain", text: content },
    ],
  }
}

/** Undefined when it is no text. */
function textIn(bytes: Buffer): string | undefined {
  try {
    return bytes.includes(0) ? undefined : new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

function partsOf(uri: string): { session: string; path: string; query: z.output<typeof Query> } {
  const [, session = "", path = "", asked = ""] = /^warren:\/\/([^/?#]+)([^?#]*)(?:\?(.*))?$/s.exec(uri) ?? []
  const query = Query.safeParse(Object.fromEntries(new URLSearchParams(asked)))
  if (session === "" || !query.success) throw new Fault("not_found", `there is no resource ${uri.slice(0, 200)}`)
  return { session: decoded(session), path: decoded(path), query: query.data }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch (cause) {
    throw new Fault("not_found", "the resource's address cannot be read", { cause })
  }
}

function jsonOf(uri: string, value: object): ReadResourceResult {
  return { contents: [{ uri, mimeType: "application/json", text: JSON.stringify(value) }] }
}
