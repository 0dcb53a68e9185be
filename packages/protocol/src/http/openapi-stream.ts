import { httpOf } from "./path.ts"
import { isStream, type Entry, type Stream } from "../contract.ts"
import { collectedBytesMax } from "../collected.ts"

type Json = Record<string, unknown>

/** What of a stream's HTTP routes OpenAPI can say; the rest is said in words. */

const bytes = {
  "application/octet-stream": { schema: { type: "string", contentMediaType: "application/octet-stream" } },
}

export const bytesBody: Json = { required: true, description: "The bytes, as many as there are.", content: bytes }

export function streamParameters(entry: Entry): Json[] {
  if (!isStream(entry)) return []
  if (entry.body === "socket") return []
  if (entry.body === "bytes") return entry.size ? [header("Range", "A part: `bytes=0-99`.", "bytes=0-99")] : []
  const encoding = { type: "string", enum: ["text", "base64"], default: "text" }
  return [{ name: "encoding", in: "query", required: false, description: "Of output in events.", schema: encoding }]
}

function header(name: string, description: string, example: string): Json {
  return { name, in: "header", required: false, description, schema: { type: "string" }, example }
}

/** Where a stream takes `stdin`, a request can give its text. */
export function withStdinText(entry: Entry, properties: Json): Json {
  if (!isStream(entry) || entry.body !== "result" || !("stdin" in properties)) return properties
  const text = { type: "string", description: "What it reads." }
  return { ...properties, stdin: { anyOf: [text, properties["stdin"]], examples: ["hello\n"] } }
}

export function streamAnswers(entry: Stream, down: Json): Json {
  if (entry.body === "socket") return { "101": webSocketAnswer }
  if (entry.body === "result") return resultAnswers(entry, down)
  const isRead = httpOf(entry.http ?? "GET /").method === "GET"
  if (!isRead) return { "200": json("Done: its last message.", { type: "object" }, down) }
  const whole = { "200": { description: "The bytes.", content: bytes } }
  if (!entry.size) return whole
  const range = { "Content-Range": { description: "Which part of how many.", schema: { type: "string" } } }
  return {
    ...whole,
    "206": { description: "The part that was asked for.", headers: range, content: bytes },
    "416": { description: "There is nothing in that part.", headers: range },
  }
}

function resultAnswers(entry: Stream, down: Json): Json {
  const text = { type: "string" }
  const schema = {
    type: "object",
    required: ["stdout", "stderr", "truncated"],
    properties: { stdout: text, stderr: text, pty: text, truncated: { type: "boolean" } },
    additionalProperties: true,
    examples: [{ stdout: "hello\n", stderr: "", truncated: false }],
  }
  const limit = `At most ${collectedBytesMax} bytes of each output; what is not UTF-8 in it is replaced.`
  const result = json(`Everything it said, and the fields of its last message. ${limit}`, schema, down)
  const events =
    "Or, for who accepts them, server-sent events: `stdout`, `stderr` and `pty` with `text` or `base64`, messages by their name, then `end` or `fault`."
  const content = { ...(result["content"] as Json), "text/event-stream": { schema: { type: "string" } } }
  const isGet = httpOf(entry.http ?? "GET /").method === "GET"
  return {
    "200": { description: `${String(result["description"])} ${events}`, content },
    ...(isGet ? { "101": webSocketAnswer } : {}),
  }
}

function json(description: string, schema: Json, down: Json): Json {
  const described = `${description} Its messages: ${JSON.stringify(down)}`
  return { description: described, content: { "application/json": { schema } } }
}

const webSocketAnswer = {
  description:
    'A WebSocket. The first text message is the input. Then text messages are its messages; binary ones are bytes behind a tag: 1 for what it reads, 2 stdout, 3 stderr, 4 pty. It closes with 1000 at the end, and with 1011 after `{"fault":…}`.',
}

/** The same stream on a WebSocket, described after its plain request. */
export function webSocketOperation(plain: Json): Json {
  const { operationId, summary, tags, parameters, responses } = plain
  const inPath = (parameters as Json[]).filter((parameter) => parameter["in"] === "path")
  const { default: failure } = responses as Json
  return {
    ...{ operationId: `${String(operationId)}.webSocket`, summary, tags, parameters: inPath },
    responses: { "101": webSocketAnswer, default: failure },
  }
}
