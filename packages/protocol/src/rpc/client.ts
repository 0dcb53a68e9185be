import type { Duplex } from "node:stream"
import type { z } from "zod"
import { Fault } from "@warren/base/fault.ts"
import { FrameChannel } from "@warren/base/frame-channel.ts"
import { decodeJson, isJson } from "@warren/base/frame.ts"
import { Collected } from "../collected.ts"
import { isCall, isFeed, type Answer, type Asked, type CallName, type Contract, type FeedName } from "../contract.ts"
import type { Item, Numbered, StreamName } from "../contract.ts"
import { FeedBuffer } from "./feed-buffer.ts"
import { connectionId, CollectedResult, Failed, FeedEnd, FeedItem, Out, rpcLimits, rpcVersion, Texts } from "./wire.ts"
import { Welcome } from "./wire.ts"

interface CallOptions {
  readonly signal?: AbortSignal | undefined
  /** 0 waits for ever. */
  readonly timeoutMs?: number
  /** Goes with the request to a runner that answers to none without. */
  readonly statement?: string | undefined
  /** The W3C's `traceparent` of what this is a part of. */
  readonly trace?: string | undefined
  /** The caller's own name for a request that makes something: asked again with it, nothing is made twice. */
  readonly key?: string | undefined
}

/** Where what comes back for one request goes. */
interface Sink {
  out(value: unknown): void
  item(seq: number, item: unknown, bytes: number): void
  end(): void
  fail(thrown: unknown): void
}

interface Pending {
  readonly id: number
  readonly message: object
  readonly sink: Sink
}

const defaultTimeoutMs = 30_000

/** The asking end of a contract, over one connection: many requests in flight, each answer to its own caller. */
export class RpcClient<C extends Contract> implements AsyncDisposable {
  readonly #contract: C
  readonly #channel: FrameChannel
  /** Not sent yet: the peer says how much it takes at once. */
  readonly #queued = new Set<Pending>()
  readonly #sent = new Map<number, Pending>()
  readonly #helloTimer: NodeJS.Timeout
  #lastId = connectionId
  #inFlightMax = 0
  #isWaitingForRoom = false
  #ended: Fault | undefined

  constructor(stream: Duplex, contract: C, name = "") {
    this.#contract = contract
    this.#channel = new FrameChannel(stream, {
      body: (body) => this.#receive(body),
      end: (fault) => this.#end(fault ?? new Fault("unavailable", "the connection closed")),
    })
    this.#helloTimer = setTimeout(() => {
      this.#channel.close(new Fault("timeout", "the other side did not answer the greeting"))
    }, rpcLimits.helloMs)
    this.#channel.send({ hello: { version: rpcVersion, name } })
  }

  get isOpen(): boolean {
    return this.#ended === undefined
  }

  /** Requests queued or not fully answered. */
  get waiting(): number {
    return this.#queued.size + this.#sent.size
  }

  /** Aborted work rejects with the signal's reason, once the other side has stopped it (or had time enough to). */
  async call<K extends CallName<C>>(name: K, input: Asked<C, K>, options: CallOptions = {}): Promise<Answer<C, K>> {
    const entry = this.#contract[name]
    if (!entry || !isCall(entry)) throw new Fault("internal", `${name} is not a call`)
    options.signal?.throwIfAborted()
    const timeoutMs = options.timeoutMs ?? entry.timeoutMs ?? defaultTimeoutMs
    const out = await this.#ask(name, input, { ...options, timeoutMs })
    return checked(name, entry.out, out) as Answer<C, K>
  }

  /** What a stream comes to, without a connection of its own. */
  async collect<K extends StreamName<C>>(
    name: K,
    input: Asked<C, K>,
    options: Omit<CallOptions, "timeoutMs" | "key"> = {},
  ): Promise<Collected> {
    options.signal?.throwIfAborted()
    const texts = new Map<string, string>()
    // Long texts come in pieces, and the last piece of each with all the rest.
    const add = (piece: unknown): void => {
      for (const [key, text] of Object.entries(Texts.parse(piece))) texts.set(key, (texts.get(key) ?? "") + text)
    }
    const out = CollectedResult.parse(await this.#ask(name, input, { ...options, timeoutMs: 0 }, add))
    for (const [key, text] of texts) out[key] = text + String(out[key])
    return new Collected(out)
  }

  /** Items until the feed ends. Leaving the loop cancels it. A reader too slow for its buffer gets `resync`. */
  async *feed<K extends FeedName<C>>(
    name: K,
    input: Asked<C, K>,
    options: Omit<CallOptions, "timeoutMs"> = {},
  ): AsyncGenerator<Numbered<Item<C, K>>, void, void> {
    const entry = this.#contract[name]
    if (!entry || !isFeed(entry)) throw new Fault("internal", `${name} is not a feed`)
    options.signal?.throwIfAborted()
    const buffer = new FeedBuffer()
    const pending = this.#enqueue(name, input, options, {
      out: () => buffer.fail(new Fault("internal", `the feed ${name} was answered like a call`)),
      item: (seq, item, bytes) => {
        if (!buffer.add(seq, item, bytes)) this.#cancel(pending)
      },
      end: () => buffer.end(),
      fail: (thrown) => buffer.fail(thrown),
    })
    const abort = (): void => buffer.fail(options.signal?.reason)
    options.signal?.addEventListener("abort", abort, { once: true })
    try {
      for await (const { seq, item } of buffer.read())
        yield { seq, item: checked(name, entry.each, item) as Item<C, K> }
    } finally {
      options.signal?.removeEventListener("abort", abort)
      this.#cancel(pending)
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#channel.close(new Fault("cancelled", "the client closed"))
    return Promise.resolve()
  }

  #ask(
    name: string,
    input: unknown,
    options: CallOptions & { timeoutMs: number },
    piece?: (item: unknown) => void,
  ): Promise<unknown> {
    const { signal, timeoutMs } = options
    return new Promise((resolve, reject) => {
      let stopped: { readonly reason: unknown } | undefined
      let patience: NodeJS.Timeout | undefined
      const finish = (settle: () => void): void => {
        clearTimeout(timer)
        clearTimeout(patience)
        signal?.removeEventListener("abort", abort)
        if (stopped) reject(stopped.reason)
        else settle()
      }
      const wrong = (): void => finish(() => reject(new Fault("internal", `the call ${name} was answered like a feed`)))
      const pending = this.#enqueue(name, input, options, {
        out: (value) => finish(() => resolve(value)),
        item: piece === undefined ? wrong : (_, item) => piece(item),
        end: wrong,
        fail: (thrown) => finish(() => reject(thrown)),
      })
      const stop = (reason: unknown): void => {
        if (stopped) return
        stopped = { reason }
        patience = setTimeout(() => finish(() => undefined), rpcLimits.cancelMs)
        this.#cancel(pending)
      }
      const abort = (): void => stop(signal?.reason)
      signal?.addEventListener("abort", abort, { once: true })
      const late = (): void => stop(new Fault("timeout", `${name} took longer than ${timeoutMs} ms`))
      const timer = timeoutMs > 0 ? setTimeout(late, timeoutMs) : undefined
    })
  }

  #enqueue(call: string, input: unknown, { statement, trace, key }: CallOptions, sink: Sink): Pending {
    const id = ++this.#lastId
    const pending: Pending = { id, message: { id, call, in: input, statement, trace, key }, sink }
    // Told later, like every other answer, so that no caller has to handle a failure during the call itself.
    if (this.#ended) queueMicrotask(() => sink.fail(this.#ended))
    else if (this.#queued.size >= rpcLimits.queuedMax) {
      queueMicrotask(() => sink.fail(new Fault("limit", "too many requests are waiting")))
    } else {
      this.#queued.add(pending)
      this.#pump()
    }
    return pending
  }

  /** Sends what may be sent: within what the peer works on at once, and only while it reads. */
  #pump(): void {
    for (const pending of this.#queued) {
      if (this.#sent.size >= this.#inFlightMax) return
      if (!this.#channel.hasRoom) return this.#pumpLater()
      this.#queued.delete(pending)
      try {
        this.#channel.send(pending.message)
        this.#sent.set(pending.id, pending)
      } catch (thrown) {
        queueMicrotask(() => pending.sink.fail(thrown))
      }
    }
  }

  #pumpLater(): void {
    if (this.#isWaitingForRoom) return
    this.#isWaitingForRoom = true
    void this.#channel.room().then(() => {
      this.#isWaitingForRoom = false
      this.#pump()
    })
  }

  /** What is queued is forgotten; what was sent stays on the books until the peer says that it has stopped. */
  #cancel(pending: Pending): void {
    if (this.#queued.delete(pending)) pending.sink.fail(new Fault("cancelled", "cancelled before it was sent"))
    else if (this.#sent.has(pending.id)) this.#channel.send({ id: pending.id, cancel: true })
  }

  #receive(body: Buffer): void {
    if (!isJson(body)) throw new Fault("invalid", "no bytes are expected here")
    const message = decodeJson(body)
    if (this.#inFlightMax === 0) return this.#welcome(message)
    const pending = this.#sent.get(message["id"] as number)
    if (!pending) return this.#stray(message)
    if ("item" in message) {
      const { seq, item } = FeedItem.parse(message)
      return pending.sink.item(seq, item, body.length)
    }
    const tell = answerOf(message)
    // Only now: an answer that could not be read ends the connection, and with it whoever is still on the books.
    this.#sent.delete(pending.id)
    tell(pending.sink)
    this.#pump()
  }

  #welcome(message: Readonly<Record<string, unknown>>): void {
    this.#stray(message)
    const { welcome } = Welcome.parse(message)
    clearTimeout(this.#helloTimer)
    this.#inFlightMax = welcome.inFlightMax
    this.#pump()
  }

  /** A fault of the connection itself ends it; an answer to what is no longer waited for is late, and ignored. */
  #stray(message: Readonly<Record<string, unknown>>): void {
    const failed = Failed.safeParse(message)
    if (failed.success && failed.data.id === connectionId) throw Fault.fromData(failed.data.fault)
  }

  #end(fault: Fault): void {
    this.#ended = fault
    clearTimeout(this.#helloTimer)
    for (const pending of [...this.#queued, ...this.#sent.values()]) pending.sink.fail(fault)
    this.#queued.clear()
    this.#sent.clear()
  }
}

/** What a message that ends a request has to say. */
function answerOf(message: Readonly<Record<string, unknown>>): (sink: Sink) => void {
  if ("out" in message) {
    const { out } = Out.parse(message)
    return (sink) => sink.out(out)
  }
  if ("fault" in message) {
    const fault = Fault.fromData(Failed.parse(message).fault)
    return (sink) => sink.fail(fault)
  }
  if (FeedEnd.safeParse(message).success) return (sink) => sink.end()
  return (sink) => sink.fail(new Fault("unsupported", "the other side answered in a way not known here"))
}

function checked(name: string, schema: z.ZodType, value: unknown): unknown {
  const result = schema.safeParse(value)
  if (!result.success)
    throw new Fault("internal", `what came back for ${name} has the wrong shape`, { cause: result.error })
  return result.data
}
