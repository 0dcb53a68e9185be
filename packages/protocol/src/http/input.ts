import { TextDecoder } from "node:util"
import { Fault } from "@warren/base/fault.ts"
import type { Context as HonoContext } from "hono"
import { isFeed, isStream, type Entry } from "../contract.ts"
import { requestBody } from "./request-body.ts"

const bodyBytesMax = 1024 * 1024

const bodiless: ReadonlySet<string> = new Set(["GET", "HEAD", "DELETE"])

/** What a request gives as input, not checked yet: its body or its query, and what its path names, which wins. */
export async function givenInput(c: HonoContext, entry: Entry): Promise<Record<string, unknown>> {
  const hasNoBody = bodiless.has(c.req.method)
  const isBytes = isStream(entry) && entry.body === "bytes"
  const given = hasNoBody || isBytes ? queryOf(c) : await readBody(c)
  const resumed = isFeed(entry) ? lastEventId(c) : {}
  return { ...given, ...resumed, ...c.req.param() }
}

/** What is said more than once is a list. */
function queryOf(c: HonoContext): Record<string, unknown> {
  const pairs = Object.entries(c.req.queries())
  return Object.fromEntries(pairs.map(([name, values]) => [name, values.length > 1 ? values : values[0]]))
}

async function readBody(c: HonoContext): Promise<object> {
  const text = await readText(c)
  if (text === "") return {}
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === "object" && value !== null && !Array.isArray(value) && isText(value, text)) return value
  } catch {
    // Falls through to the one answer for everything that is not an object.
  }
  throw new Fault("invalid", "the body is not a JSON object")
}

const halfEscaped = /\\u[dD][89a-fA-F]/
const half = /\p{Surrogate}/u

/** Half a character can be written in JSON, and is no text: on its way to a file or a program it would become something else. */
function isText(value: object, text: string): boolean {
  if (!halfEscaped.test(text)) return true
  const left: unknown[] = [value]
  for (const one of left) {
    if (typeof one === "string" && half.test(one)) return false
    if (typeof one !== "object" || one === null) continue
    for (const [key, within] of Object.entries(one)) left.push(key, within)
  }
  return true
}

/** The body, never more of it than the limit, whatever its headers say. */
async function readText(c: HonoContext): Promise<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true })
  let text = ""
  let bytes = 0
  for await (const chunk of requestBody(c)) {
    bytes += chunk.length
    if (bytes > bodyBytesMax) throw new Fault("limit", `the body is over ${bodyBytesMax} bytes`)
    text += decode(decoder, chunk)
  }
  return text + decode(decoder)
}

function decode(decoder: TextDecoder, chunk?: Uint8Array): string {
  try {
    return decoder.decode(chunk, { stream: chunk !== undefined })
  } catch (cause) {
    throw new Fault("invalid", "the body is not UTF-8", { cause })
  }
}

/** A browser that reconnects says by itself where it was. */
function lastEventId(c: HonoContext): { after?: string } {
  const id = c.req.header("last-event-id")
  return id === undefined ? {} : { after: id }
}
