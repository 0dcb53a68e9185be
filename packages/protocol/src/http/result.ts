import { TextDecoder } from "node:util"
import { Fault } from "@warren/base/fault.ts"
import type { StreamTag } from "@warren/base/frame.ts"
import { Collected, collected, outputNames, withoutName } from "../collected.ts"
import type { Stream } from "../contract.ts"
import { Chunk, endOfBytes, type Conversation } from "../conversation.ts"
import type { Asked } from "./asked.ts"
import { nameOf } from "./byte-body.ts"
import { events } from "./events.ts"
import { sendJson } from "./json.ts"

type AnyConversation = Conversation<unknown, unknown>

/** Everything a stream says: one JSON answer, or events as it goes for who accepts those. */
export async function sendResult(asked: Asked<Stream>, given: Record<string, unknown>): Promise<Response> {
  const { c } = asked
  const wantsEvents = c.req.header("accept")?.includes("text/event-stream") ?? false
  const encode = wantsEvents ? encoder(c.req.query("encoding") ?? "text") : undefined
  const { stdin, ...rest } = given
  // Its text can be given instead of the wish to write one; there is no other way to write it here.
  const input = stdin === undefined ? rest : { ...rest, stdin: typeof stdin === "string" ? true : stdin }
  const isWriting = stdin === true || typeof stdin === "string"
  const collects = !encode && !isWriting
  const answer = (await asked.ask(asked.name, input, { collects })) as AnyConversation | Collected
  if (answer instanceof Collected) return sendJson(c, answer.result)
  const conversation = answer
  const writing = isWriting ? write(conversation, typeof stdin === "string" ? stdin : "") : Promise.resolve()
  // When it cannot be written any more, what is read says why.
  writing.catch(() => undefined)
  if (encode) return eventsOf(asked, conversation, encode)
  return sendJson(c, (await collected(asked.entry, conversation, asked.signal)).result)
}

async function write(conversation: AnyConversation, text: string): Promise<void> {
  await conversation.write(Buffer.from(text))
  conversation.send(endOfBytes)
}

type Encode = (tag: StreamTag, bytes: Buffer) => object

/** Text is readable, base64 is exact. Both are in JSON: a bare carriage return would end a line of events. */
function encoder(encoding: string): Encode {
  if (encoding === "base64") return (_, bytes) => ({ base64: bytes.toString("base64") })
  if (encoding !== "text") throw new Fault("invalid", `encoding: "text" or "base64"`)
  const decoders = new Map<StreamTag, TextDecoder>()
  return (tag, bytes) => {
    const decoder = decoders.get(tag) ?? new TextDecoder("utf-8", { ignoreBOM: true })
    decoders.set(tag, decoder)
    return { text: decoder.decode(bytes, { stream: true }) }
  }
}

/** Output as events named like it, messages as events of their own name. */
function eventsOf({ c, entry, log }: Asked<Stream>, conversation: AnyConversation, encode: Encode): Response {
  return events(c, log, async (send) => {
    await using _ = conversation
    for (let item = await conversation.next(); item !== undefined; item = await conversation.next()) {
      const event =
        item instanceof Chunk
          ? { event: outputNames[item.tag], data: JSON.stringify(encode(item.tag, item.bytes)) }
          : { event: nameOf(item), data: JSON.stringify(withoutName(entry.down.parse(item))) }
      if (!(await send(event))) return
    }
  })
}
