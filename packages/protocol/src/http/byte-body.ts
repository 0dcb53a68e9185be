import { Fault, messageOf } from "@warren/base/fault.ts"
import type { Context as HonoContext } from "hono"
import { withoutName } from "../collected.ts"
import type { Stream } from "../contract.ts"
import { Chunk, endOfBytes, type Conversation } from "../conversation.ts"
import { respond, type Asked } from "./asked.ts"
import { events } from "./events.ts"
import { partOf, type Part } from "./range.ts"
import { requestBody } from "./request-body.ts"

type AnyConversation = Conversation<unknown, unknown>
type Size = NonNullable<Stream["size"]>

/** The bytes of a stream as the body of the answer, as fast as the reader takes them. */
export async function sendBytes(asked: Asked<Stream>, given: Record<string, unknown>): Promise<Response> {
  const { c, entry } = asked
  const range = c.req.header("range")
  // Which version the reader has a part of cannot be told here, so with If-Range it gets the whole.
  const isPart = range !== undefined && !c.req.header("if-range") && !("offset" in given) && !("limit" in given)
  const size = isPart && entry.size ? await sizeOf(asked, entry.size, given) : undefined
  const part = size === undefined ? undefined : partOf(range, size)
  if (part === "outside") return outside(c, size ?? 0)
  const body = await bodyOf(asked, { ...given, ...part }, part?.limit)
  return new Response(body, { status: part ? 206 : 200, headers: headersOf(entry, part, size) })
}

/** What the bytes would come with. */
export async function sendHead(asked: Asked<Stream>, given: Record<string, unknown>): Promise<Response> {
  const { entry } = asked
  const size = entry.size ? { "content-length": String(await sizeOf(asked, entry.size, given)) } : {}
  return new Response(null, { headers: { ...headersOf(entry, undefined, undefined), ...size } })
}

async function sizeOf({ ask }: Asked<Stream>, { call, field }: Size, given: object): Promise<number> {
  const answer = (await ask(call, given)) as Record<string, unknown>
  const size = answer[field]
  if (typeof size !== "number") throw new Fault("internal", `${call} has no ${field}`)
  return size
}

function outside(c: HonoContext, size: number): Response {
  const response = respond(c, new Fault("invalid", `there are only ${size} bytes`), 416)
  response.headers.set("content-range", `bytes */${size}`)
  return response
}

function headersOf(entry: Stream, part: Part | undefined, size: number | undefined): Record<string, string> {
  return {
    "content-type": "application/octet-stream",
    // What is in it was written by somebody else: a browser must not make a page of it.
    "x-content-type-options": "nosniff",
    ...(entry.size === undefined ? {} : { "accept-ranges": "bytes" }),
    ...(part && {
      "content-range": `bytes ${part.offset}-${part.offset + part.limit - 1}/${size}`,
      "content-length": String(part.limit),
    }),
  }
}

/** The first piece is here before anything is answered, so that what fails at once is answered with its own status. */
async function bodyOf(asked: Asked<Stream>, input: object, length?: number): Promise<ReadableStream<Uint8Array>> {
  const conversation = (await asked.ask(asked.name, input)) as AnyConversation
  const end = (): Promise<void> => Promise.resolve(conversation[Symbol.asyncDispose]())
  let sent = 0
  let first: Promise<Uint8Array | undefined> | undefined = nextBytes(conversation)
  await first.catch(async (thrown: unknown) => {
    await end()
    throw thrown
  })
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    try {
      const bytes = await (first ?? nextBytes(conversation))
      first = undefined
      if (bytes) {
        sent += bytes.length
        return controller.enqueue(bytes)
      }
      if (length !== undefined && sent !== length) throw new Fault("conflict", "it has changed while it was read")
      controller.close()
    } catch (thrown) {
      // Too late for a status: the answer breaks off, which its reader notices.
      if (Fault.from(thrown).code === "internal") {
        asked.log("error", "http.bug", { path: asked.c.req.path, message: messageOf(thrown) })
      }
      controller.error(new Error("the answer broke off"))
    }
    await end()
  }
  return new ReadableStream({ pull, cancel: end }, { highWaterMark: 0 })
}

/** A copy of the next bytes: the server may still hold them when the next are asked for. */
async function nextBytes(conversation: AnyConversation): Promise<Uint8Array | undefined> {
  for (;;) {
    const item = await conversation.next()
    if (item === undefined) return undefined
    if (item instanceof Chunk && item.bytes.length > 0) return Buffer.from(item.bytes)
  }
}

/** The body of the request as the bytes of a stream, as fast as the handler takes them; answered with its last message. */
export async function takeBytes(asked: Asked<Stream>, given: Record<string, unknown>): Promise<Response> {
  const { c, entry } = asked
  const wantsEvents = c.req.header("accept")?.includes("text/event-stream") ?? false
  if (wantsEvents) return tellMeanwhile(asked, (await asked.ask(asked.name, given)) as AnyConversation)
  await using conversation = (await asked.ask(asked.name, given)) as AnyConversation
  const answer = lastMessage(conversation)
  // The handler may be done, or have failed, before it has everything.
  await Promise.race([pour(c, conversation), answer])
  return c.json(withoutName(entry.down.parse(await answer)))
}

/** What it says while it takes them, as events. */
function tellMeanwhile({ c, entry, log }: Asked<Stream>, conversation: AnyConversation): Response {
  return events(c, log, async (send) => {
    await using _ = conversation
    const poured = pour(c, conversation)
    // A body that breaks off ends what it was for; without its end nothing of it may be kept.
    poured.catch(() => conversation[Symbol.asyncDispose]())
    for (let item = await conversation.next(); item !== undefined; item = await conversation.next()) {
      if (item instanceof Chunk) continue
      const data = JSON.stringify(withoutName(entry.down.parse(item)))
      if (!(await send({ event: nameOf(item), data }))) return
    }
  })
}

async function pour(c: HonoContext, conversation: AnyConversation): Promise<void> {
  for await (const chunk of requestBody(c)) await conversation.write(chunk)
  conversation.send(endOfBytes)
}

async function lastMessage(conversation: AnyConversation): Promise<unknown> {
  let last: unknown
  for (let item = await conversation.next(); item !== undefined; item = await conversation.next()) {
    if (!(item instanceof Chunk)) last = item
  }
  return last
}

export function nameOf(message: unknown): string {
  const { ev } = message as { ev?: unknown }
  return typeof ev === "string" ? ev : "message"
}
