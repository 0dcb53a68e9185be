import { TextDecoder } from "node:util"
import { streamTags, type StreamTag } from "@warren/base/frame.ts"
import type { Stream } from "./contract.ts"
import { Chunk, type Conversation } from "./conversation.ts"
import { untilAborted } from "./until-aborted.ts"

/** Bytes of each output that are kept for one answer; who wants more asks for events or a WebSocket. */
export const collectedBytesMax = 1024 * 1024

/** What outputs are called where there are no tags. */
export const outputNames: Readonly<Record<StreamTag, string>> = {
  [streamTags.stdin]: "stdin",
  [streamTags.stdout]: "stdout",
  [streamTags.stderr]: "stderr",
  [streamTags.raw]: "pty",
}

/** Everything a stream has said, as one answer: its last message, with all output as text beside it. */
export class Collected {
  readonly result: Readonly<Record<string, unknown>>

  constructor(result: Readonly<Record<string, unknown>>) {
    this.result = result
  }
}

/** Listens to its end. Throws what ended it, or the signal's reason. */
export async function collected(
  entry: Stream,
  conversation: Conversation<unknown, unknown>,
  signal: AbortSignal,
): Promise<Collected> {
  const aborted = untilAborted(signal)
  try {
    signal.throwIfAborted()
    return await Promise.race([heard(entry, conversation), aborted.promise])
  } finally {
    aborted.forget()
    await conversation[Symbol.asyncDispose]()
  }
}

async function heard(entry: Stream, conversation: Conversation<unknown, unknown>): Promise<Collected> {
  const texts = new Map<string, Text>()
  let last: unknown = {}
  for (let item = await conversation.next(); item !== undefined; item = await conversation.next()) {
    if (item instanceof Chunk) textOf(texts, outputNames[item.tag]).add(item.bytes)
    else last = entry.down.parse(item)
  }
  const message = withoutName(last)
  const isCut = [...texts.values()].some((text) => text.isCut)
  const all = [...texts].map(([name, text]) => [name, text.end()])
  return new Collected({
    ...message,
    stdout: "",
    stderr: "",
    ...(Object.fromEntries(all) as Record<string, string>),
    truncated: isCut || ("truncated" in message && message.truncated === true),
  })
}

function textOf(texts: Map<string, Text>, name: string): Text {
  const text = texts.get(name) ?? new Text()
  texts.set(name, text)
  return text
}

/** The beginning of some output, as text. What is not UTF-8 is replaced; a mark at its beginning is a character like any other. */
class Text {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true })
  #text = ""
  #bytes = 0
  isCut = false

  add(bytes: Buffer): void {
    const kept = bytes.subarray(0, collectedBytesMax - this.#bytes)
    if (kept.length < bytes.length) this.isCut = true
    this.#bytes += kept.length
    this.#text += this.#decoder.decode(kept, { stream: true })
  }

  /** A character that the limit cut in two is left out; one that was never whole is replaced. */
  end(): string {
    return this.isCut ? this.#text : this.#text + this.#decoder.decode()
  }
}

/** The name of a message tells it from others; as the only answer it needs none. */
export function withoutName(message: unknown): object {
  const { ev: _, ...rest } = (message ?? {}) as Record<string, unknown>
  return rest
}
