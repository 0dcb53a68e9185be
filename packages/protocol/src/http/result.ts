import { TextDecoder } from "node:util"
import { Fault } from "@warren/base/fault.ts"
import { streamTags, type StreamTag } from "@warren/base/frame.ts"
import type { Stream } from "../contract.ts"
import { Chunk, endOfBytes, type Conversation } from "../conversation.ts"
import type { Asked } from "./asked.ts"
import { nameOf, withoutName } from "./byte-body.ts"
import { events } from "./events.ts"

type AnyConversation = Conversation<unknown, unknown>

/** Bytes of each output that are kept for one answer; who wants more asks for events or a WebSocket. */
export const resultBytesMax = 1024 * 1024

const outputs: Readonly<Record<StreamTag, string>> = {
  [streamTags.stdin]: "stdin",
  [streamTags.stdout]: "stdout",
  [streamTags.stderr]: "stderr",
  [streamTags.raw]: "pty",
}

/** Everything a stream says: one JSON answer, or events as it goes for who accepts those. */
export async function sendResult(asked: Asked<Stream>, given: Record<string, unknown>): Promise<Response> {
  const { c } = asked
  const wantsEvents = c.req.header("accept")?.includes("text/event-stream") ?? false
  const encode = wantsEvents ? encoder(c.req.query("encoding") ?? "text") : undefined
  const { stdin, ...rest } = given
  // Its text can be given instead of the wish to write one; there is no other way to write it here.
  const input = stdin === undefined ? rest : { ...rest, stdin: typeof stdin === "string" ? true : stdin }
  const conversation = (await asked.ask(asked.name, input)) as AnyConversation
  const isWriting = stdin === true || typeof stdin === "string"
  const writing = isWriting ? write(conversation, typeof stdin === "string" ? stdin : "") : Promise.resolve()
  // When it cannot be written any more, what is read says why.
  writing.catch(() => undefined)
  if (encode) return eventsOf(asked, conversation, encode)
  await using _ = conversation
  return c.json(await resultOf(asked, conversation))
}

async function write(conversation: AnyConversation, text: string): Promise<void> {
  await conversation.write(Buffer.from(text))
  conversation.send(endOfBytes)
}

/** The last message, with all output as text beside it. */
async function resultOf({ entry, signal }: Asked<Stream>, conversation: AnyConversation): Promise<object> {
  const texts = new Map([streamTags.stdout, streamTags.stderr].map((tag): [StreamTag, Text] => [tag, new Text()]))
  let last: unknown = {}
  for (let item = await conversation.next(); item !== undefined; item = await conversation.next()) {
    signal.throwIfAborted()
    if (item instanceof Chunk) textOf(texts, item.tag).add(item.bytes)
    else last = entry.down.parse(item)
  }
  const all = [...texts].map(([tag, text]): [string, string] => [outputs[tag], text.end()])
  const result = withoutName(last)
  const isCut = [...texts.values()].some((text) => text.isCut)
  return {
    ...result,
    ...Object.fromEntries(all),
    truncated: isCut || ("truncated" in result && result.truncated === true),
  }
}

function textOf(texts: Map<StreamTag, Text>, tag: StreamTag): Text {
  const text = texts.get(tag) ?? new Text()
  texts.set(tag, text)
  return text
}

/** The beginning of some output, as text. What is not UTF-8 is replaced. */
class Text {
  readonly #decoder = new TextDecoder()
  #text = ""
  #bytes = 0
  isCut = false

  add(bytes: Buffer): void {
    const kept = bytes.subarray(0, resultBytesMax - this.#bytes)
    if (kept.length < bytes.length) this.isCut = true
    this.#bytes += kept.length
    this.#text += this.#decoder.decode(kept, { stream: true })
  }

  /** A character that the limit cut in two is left out; one that was never whole is replaced. */
  end(): string {
    return this.isCut ? this.#text : this.#text + this.#decoder.decode()
  }
}

type Encode = (tag: StreamTag, bytes: Buffer) => object

/** Text is readable, base64 is exact. Both are in JSON: a bare carriage return would end a line of events. */
function encoder(encoding: string): Encode {
  if (encoding === "base64") return (_, bytes) => ({ base64: bytes.toString("base64") })
  if (encoding !== "text") throw new Fault("invalid", `encoding: "text" or "base64"`)
  const decoders = new Map<StreamTag, TextDecoder>()
  return (tag, bytes) => {
    const decoder = decoders.get(tag) ?? new TextDecoder()
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
          ? { event: outputs[item.tag], data: JSON.stringify(encode(item.tag, item.bytes)) }
          : { event: nameOf(item), data: JSON.stringify(withoutName(entry.down.parse(item))) }
      if (!(await send(event))) return
    }
  })
}
