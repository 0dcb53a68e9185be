import type { Duplex } from "node:stream"
import type { z } from "zod"
import { Fault } from "@warren/base/fault.ts"
import { FrameChannel } from "@warren/base/frame-channel.ts"
import { decodeJson, isJson } from "@warren/base/frame.ts"
import { messageOf } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import { collected } from "../collected.ts"
import {
  isCall,
  isFeed,
  isStream,
  type Caller,
  type Context,
  type Contract,
  type Entry,
  type Stream,
} from "../contract.ts"
import type { Handlers, Numbered } from "../contract.ts"
import type { Conversation } from "../conversation.ts"
import { wireFault } from "../fault.ts"
import { describeIssues } from "../issues.ts"
import { ServedStream, type Line } from "./served-stream.ts"
import { Cancel, connectionId, Hello, Open, Request, rpcLimits, rpcVersion, Say } from "./wire.ts"

export interface RpcServerOptions<C extends Contract> {
  readonly contract: C
  readonly handlers: Handlers<C>
  readonly log: Log
  readonly build: string
  /** Decides on each request by itself, where being connected is not enough; throws when it may not be. */
  admit?(asked: RpcAsked): Admission
  /** For tools that do not speak this protocol: their `op` frames, which come without hello. Without it they are refused. */
  readonly ops?: Ops
}

type Message = Readonly<Record<string, unknown>>

export interface Ops {
  /** The call a frame comes down to. */
  call(message: Message): string
  /** Never rejects. */
  answer(message: Message, context: Context): Promise<object>
  refuse(thrown: unknown): object
}

/** A request before anything of it was looked at. */
export interface RpcAsked {
  readonly call: string
  readonly in: unknown
  readonly statement: string | undefined
  /** The W3C's `traceparent` of what this is a part of, as the caller says. */
  readonly trace?: string | undefined
  /** It goes on until one side ends it. */
  readonly isOpen: boolean
}

export interface Admission {
  readonly caller: Caller
  /** Told once, when it is over: `ok`, or the code of a fault. */
  ended(result: string): void
}

/** Frames without ids that wait for their turn on one connection. */
const opsMax = 16

type AnyHandler = (input: unknown, context: Context) => Promise<unknown> | AsyncIterable<Numbered<unknown>>
type AnyConversation = Conversation<unknown, unknown>

/** One request being worked on. Its signal is made when somebody asks for it: most calls never do, and it costs 3 µs. */
class Running implements Context {
  readonly caller: Caller
  readonly key: string | undefined
  readonly #admission: Admission | undefined
  #controller: AbortController | undefined

  constructor(caller: Caller, admission?: Admission, key?: string) {
    this.caller = admission?.caller ?? caller
    this.key = key
    this.#admission = admission
  }

  ended(result: string): void {
    this.#admission?.ended(result)
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    return this.#controller.signal
  }

  abort(reason: Fault): void {
    this.#controller ??= new AbortController()
    this.#controller.abort(reason)
  }
}

/** Answers a contract on one connection. Everything it started stops when the connection or this object closes. */
export class RpcConnection<C extends Contract> implements AsyncDisposable {
  readonly #options: RpcServerOptions<C>
  readonly #caller: Caller
  readonly #channel: FrameChannel
  readonly #running = new Map<number, Running>()
  readonly #settled = new Set<Promise<void>>()
  readonly #helloTimer: NodeJS.Timeout
  #isGreeted = false
  #isClosing = false
  #lastOp = 0
  /** When the connection is one of a stream, everything that comes is for it. */
  #stream: ServedStream | undefined

  constructor(stream: Duplex, caller: Caller, options: RpcServerOptions<C>) {
    this.#options = options
    this.#caller = caller
    this.#channel = new FrameChannel(stream, {
      body: (body) => this.#receive(body),
      end: (fault) => this.#end(fault),
    })
    this.#helloTimer = setTimeout(() => {
      this.#channel.close(new Fault("timeout", "the other side did not say hello"))
    }, rpcLimits.helloMs)
  }

  /** How many calls and feeds are being worked on. */
  get inFlight(): number {
    return this.#running.size
  }

  /** Cancels what runs, waits until it has stopped, closes. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosing = true
    // Nobody has cancelled anything: whoever waits may ask who comes next.
    this.#abortAll(closing())
    await Promise.all(this.#settled)
    this.#channel.close()
  }

  #receive(body: Buffer): void {
    let id = connectionId
    try {
      if (!isJson(body)) return this.#receiveBytes(body.subarray(1))
      const message = decodeJson(body)
      if (typeof message["id"] === "number" && Number.isSafeInteger(message["id"])) id = message["id"]
      this.#dispatch(message, body.length)
    } catch (thrown) {
      if (this.#stream) this.#abortAll(Fault.from(thrown))
      else this.#fail(id, thrown)
    }
  }

  #dispatch(message: Readonly<Record<string, unknown>>, bytes: number): void {
    if (!this.#isGreeted) return this.#greet(message)
    if ("cancel" in message) return this.#cancel(message)
    if (this.#stream) return this.#said(this.#stream, message, bytes)
    if ("open" in message) return this.#open(message)
    this.#start(this.#read(Request.safeParse(message)))
  }

  #said(stream: ServedStream, message: Message, bytes: number): void {
    const said = Say.safeParse(message)
    if (!said.success) throw new Fault("invalid", `not part of a stream: ${describeIssues(said.error)}`)
    stream.receive(said.data.say, bytes)
  }

  #receiveBytes(bytes: Buffer): void {
    if (!this.#stream) throw new Fault("unsupported", "no bytes are expected here")
    this.#stream.receiveBytes(bytes)
  }

  #read<T>(request: z.ZodSafeParseResult<T>): T {
    if (!request.success) throw new Fault("invalid", `not a request: ${describeIssues(request.error)}`)
    return request.data
  }

  #greet(message: Readonly<Record<string, unknown>>): void {
    if (typeof message["op"] === "string" && this.#options.ops) return this.#answerOp(message, this.#options.ops)
    const greeting = Hello.safeParse(message)
    if (!greeting.success) throw new Fault("unsupported", "say hello first", { hint: '{"hello":{"version":1}}' })
    this.#isGreeted = true
    clearTimeout(this.#helloTimer)
    const version = Math.min(greeting.data.hello.version, rpcVersion)
    this.#channel.send({ welcome: { version, build: this.#options.build, inFlightMax: rpcLimits.inFlightMax } })
  }

  #answerOp(message: Message, ops: Ops): void {
    clearTimeout(this.#helloTimer)
    try {
      if (this.#isClosing) throw closing()
      if (this.#running.size >= opsMax) throw new Fault("limit", "too many requests at once")
      const call = ops.call(message)
      const running = this.#admitted({ call, in: {}, statement: undefined, isOpen: false })
      // They carry no ids, so they are answered one after the other, as they came.
      const before = [...this.#settled]
      this.#work(++this.#lastOp, call, running, async () => {
        await Promise.all(before)
        await this.#deliver(await ops.answer(message, running), running)
      })
    } catch (thrown) {
      this.#channel.send(ops.refuse(thrown))
    }
  }

  #cancel(message: Readonly<Record<string, unknown>>): void {
    const cancel = Cancel.safeParse(message)
    if (!cancel.success) throw new Fault("invalid", `not a cancellation: ${describeIssues(cancel.error)}`)
    // What has been answered already is not here any more: the two crossed, and that is all right.
    this.#running.get(cancel.data.id)?.abort(new Fault("cancelled", "the caller cancelled"))
  }

  #open(message: Readonly<Record<string, unknown>>): void {
    const { id, open: name, in: input, statement, trace } = this.#read(Open.safeParse(message))
    if (this.#isClosing) throw closing()
    if (this.#running.size > 0) throw new Fault("invalid", "a stream needs a connection of its own")
    const running = this.#admitted({ call: name, in: input, statement, trace, isOpen: true })
    const entry = this.#entry(name)
    if (!isStream(entry)) throw new Fault("unsupported", `${name} is not a stream`)
    const served = new ServedStream(framedLine(this.#channel, id), entry)
    this.#stream = served
    this.#work(id, name, running, async () => {
      try {
        const conversation = await (this.#call(name, entry, input, running) as Promise<AnyConversation>)
        await served.run(conversation, running.signal)
        this.#channel.send({ id, end: true })
      } finally {
        served.close()
      }
    })
    // Whatever the answer is, it is the last thing said here.
    void Promise.all(this.#settled).then(() => this.#channel.finish())
  }

  #start(request: z.output<typeof Request>): void {
    if (this.#running.has(request.id)) {
      // An answer could not say which of the two it belongs to.
      return this.#channel.close(new Fault("invalid", `request ${request.id} is already running`))
    }
    if (this.#isClosing) throw closing()
    if (this.#running.size >= rpcLimits.inFlightMax) throw new Fault("limit", "too many requests at once")
    const { call, in: input, statement, trace, key } = request
    const running = this.#admitted({ call, in: input, statement, trace, isOpen: this.#goesOn(call) }, key)
    this.#work(request.id, request.call, running, () => this.#answer(request, running))
  }

  #admitted(asked: RpcAsked, key?: string): Running {
    return new Running(this.#caller, this.#options.admit?.(asked), key)
  }

  /** Until one side ends it: that it has begun is worth knowing before that. */
  #goesOn(name: string): boolean {
    const { contract } = this.#options
    return Object.hasOwn(contract, name) && contract[name] !== undefined && !isCall(contract[name])
  }

  #work(id: number, name: string, running: Running, doing: () => Promise<void>): void {
    this.#running.set(id, running)
    const work = doing()
      .then(() => running.ended("ok"))
      .catch((thrown: unknown) => {
        running.ended(Fault.from(thrown).code)
        this.#fail(id, thrown, name)
      })
      .finally(() => {
        this.#running.delete(id)
        this.#settled.delete(work)
      })
    this.#settled.add(work)
  }

  #entry(name: string): Entry {
    const { contract } = this.#options
    const entry = Object.hasOwn(contract, name) ? contract[name] : undefined
    if (!entry) throw new Fault("unsupported", `there is no call "${name.slice(0, 64)}"`)
    return entry
  }

  #call(name: string, entry: Entry, given: unknown, context: Context): ReturnType<AnyHandler> {
    const input = entry.in.safeParse(given)
    if (!input.success) throw new Fault("invalid", describeIssues(input.error), { subject: `call:${name}` })
    return (this.#options.handlers[name] as AnyHandler)(input.data, context)
  }

  async #answer(request: { id: number; call: string; in: unknown }, context: Context): Promise<void> {
    const entry = this.#entry(request.call)
    if (isStream(entry)) return this.#collect(request, entry, context)
    const answer = this.#call(request.call, entry, request.in, context)
    if (!isFeed(entry)) return this.#deliver({ id: request.id, out: entry.out.parse(await answer) }, context)
    for await (const { seq, item } of answer as AsyncIterable<Numbered<unknown>>) {
      context.signal.throwIfAborted()
      await this.#deliver({ id: request.id, seq, item: entry.each.parse(item) }, context)
    }
    context.signal.throwIfAborted()
    await this.#deliver({ id: request.id, end: true }, context)
  }

  /** A stream that is asked for like a call: answered with what it comes to. */
  async #collect(request: { id: number; call: string; in: unknown }, entry: Stream, context: Context): Promise<void> {
    if (entry.body !== "result")
      throw new Fault("unsupported", `${request.call} is a stream: open it on its own connection`)
    const conversation = await (this.#call(request.call, entry, request.in, context) as Promise<AnyConversation>)
    const result = { ...(await collected(entry, conversation, context.signal)).result }
    for (const [name, text] of Object.entries(result)) {
      if (typeof text !== "string") continue
      const lastAt = Math.max(0, Math.ceil(text.length / rpcLimits.pieceChars) - 1) * rpcLimits.pieceChars
      for (let at = 0; at < lastAt; at += rpcLimits.pieceChars) {
        const item = { [name]: text.slice(at, at + rpcLimits.pieceChars) }
        await this.#deliver({ id: request.id, seq: at, item }, context)
      }
      result[name] = text.slice(lastAt)
    }
    await this.#deliver({ id: request.id, out: result }, context)
  }

  /**
   * Sends when the peer has taken what was sent before: one after the other, also when many wait. A slow peer holds back
   * its own answers and feeds; the next item of a feed is asked for when this one is on its way, and nothing grows.
   */
  async #deliver(message: object, context: Context): Promise<void> {
    while (this.#channel.isOpen && !this.#channel.hasRoom) {
      await this.#room(context.signal)
      context.signal.throwIfAborted()
    }
    this.#channel.send(message)
  }

  /** Resolves when there may be room, or when nobody waits for it any more. */
  #room(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        signal.removeEventListener("abort", done)
        resolve()
      }
      signal.addEventListener("abort", done, { once: true })
      this.#channel.room().then(done, done)
    })
  }

  #fail(id: number, thrown: unknown, call?: string): void {
    const fault = Fault.from(thrown)
    if (fault.code === "internal") {
      const stack = thrown instanceof Error ? thrown.stack : undefined
      this.#options.log("error", "rpc.bug", { call, message: messageOf(thrown), stack })
    }
    this.#channel.send({ id, fault: wireFault(fault) })
  }

  #end(fault: Fault | undefined): void {
    clearTimeout(this.#helloTimer)
    if (fault) this.#options.log("warn", "rpc.closed", { code: fault.code, message: fault.message })
    this.#stream?.close()
    this.#abortAll(gone())
  }

  #abortAll(reason: Fault): void {
    for (const running of this.#running.values()) running.abort(reason)
  }
}

function framedLine(channel: FrameChannel, id: number): Line {
  return {
    get isOpen() {
      return channel.isOpen
    },
    opened: () => channel.send({ id, opened: true }),
    say: (message) => {
      channel.send({ id, say: message })
      return channel.room()
    },
    lend: (tag, bytes) => channel.lendBytes(tag, bytes),
    held: () => {
      if (channel.hasRoom) channel.send({ id, held: true })
    },
    pause: () => channel.pause(),
    resume: () => channel.resume(),
  }
}

function gone(): Fault {
  return new Fault("cancelled", "the connection closed")
}

function closing(): Fault {
  return new Fault("unavailable", "the connection is closing")
}
