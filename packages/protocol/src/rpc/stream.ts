import type { Duplex } from "node:stream"
import { Fault } from "@warren/base/fault.ts"
import { decodeJson } from "@warren/base/frame.ts"
import { isStream, type Asked, type Contract, type Down, type StreamName, type Up } from "../contract.ts"
import { Chunk, type Conversation } from "../conversation.ts"
import { Framed } from "../framed.ts"
import { Failed, FeedEnd, Held, Opened, rpcLimits, rpcVersion, Say, Welcome } from "./wire.ts"

type Message = Readonly<Record<string, unknown>>

const streamId = 1

/** Opens a stream on a connection of its own, which `stream` is from now on. */
export async function openStream<C extends Contract, K extends StreamName<C>>(
  stream: Duplex,
  contract: C,
  name: K,
  input: Asked<C, K>,
  signal?: AbortSignal,
  statement?: string,
  trace?: string,
): Promise<Conversation<Up<C, K>, Down<C, K>>> {
  const entry = contract[name]
  if (!entry || !isStream(entry)) throw new Fault("internal", `${name} is not a stream`)
  const framed = new Framed<Message>(stream, decodeJson, signal)
  // A peer that says nothing at all is given up on; how long opening takes is the handler's business.
  const patience = setTimeout(() => framed.fail(silent()), rpcLimits.helloMs)
  try {
    framed.send({ hello: { version: rpcVersion, name: "" } })
    framed.send({ id: streamId, open: name, in: input, statement, trace })
    // Both were sent without waiting: one trip there and back for the greeting and the opening.
    expect(Welcome.safeParse(await answer(framed)), name)
    clearTimeout(patience)
    expect(Opened.safeParse(await answer(framed)), name)
    return new RemoteConversation(framed, name, entry.down)
  } catch (failure) {
    await framed[Symbol.asyncDispose]()
    throw failure
  } finally {
    clearTimeout(patience)
  }
}

function silent(): Fault {
  return new Fault("timeout", "the other side did not answer the greeting")
}

async function answer(framed: Framed<Message>): Promise<Message> {
  const message = await framed.next()
  if (message instanceof Chunk) throw new Fault("internal", "bytes came before the stream was open")
  const failed = Failed.safeParse(message)
  if (failed.success) throw Fault.fromData(failed.data.fault)
  return message
}

function expect(result: { success: boolean }, name: string): void {
  if (!result.success) throw new Fault("unsupported", `the other side answered ${name} in a way not known here`)
}

interface Shape {
  safeParse(value: unknown): { success: boolean; data?: unknown; error?: unknown }
}

class RemoteConversation<Sent, Told> implements Conversation<Sent, Told> {
  readonly #framed: Framed<Message>
  readonly #name: string
  readonly #down: Shape
  #isOver = false

  constructor(framed: Framed<Message>, name: string, down: Shape) {
    this.#framed = framed
    this.#name = name
    this.#down = down
  }

  async next(): Promise<Told | Chunk | undefined> {
    while (!this.#isOver) {
      const item = await this.#framed.next()
      if (item instanceof Chunk) return item
      if ("say" in item) return this.#said(item)
      if (!Held.safeParse(item).success) this.#isOver = this.#ended(item)
    }
    return undefined
  }

  send(message: Sent): void {
    this.#framed.send({ id: streamId, say: message })
  }

  write(bytes: Uint8Array): Promise<void> {
    return this.#framed.write(bytes)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#framed[Symbol.asyncDispose]()
  }

  #said(item: Message): Told {
    const message = this.#down.safeParse(Say.safeParse(item).data?.say)
    if (message.success) return message.data as Told
    throw new Fault("internal", `what came back for ${this.#name} has the wrong shape`, { cause: message.error })
  }

  /** True when it came to its end; a fault is thrown, and so is what nobody knows. */
  #ended(item: Message): boolean {
    if (FeedEnd.safeParse(item).success) return true
    const failed = Failed.safeParse(item)
    if (failed.success) throw Fault.fromData(failed.data.fault)
    throw new Fault("unsupported", `the other side answered ${this.#name} in a way not known here`)
  }
}
