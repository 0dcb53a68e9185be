import type { Socket } from "node:net"
import { Fault } from "@warren/base/fault.ts"
import { decodeJson, encodeJson, FrameDecoder, isJson } from "@warren/base/frame.ts"
import { createLog } from "@warren/base/log.ts"
import { eventually } from "@warren/base/testing/eventually.ts"
import { SocketPair } from "@warren/base/testing/socket-pair.ts"
import { z } from "zod"
import { contract, type Handlers, type Received } from "../contract.ts"
import { RpcClient } from "../rpc/client.ts"
import { RpcConnection } from "../rpc/server.ts"
import { openPipe, pipeModes, type PipeRecord } from "./pipe.ts"

/** A contract that does on demand what a test wants to see. */
export const wire = contract({
  "echo.say": {
    since: 1,
    doc: "Says it back, after some turns of the event loop.",
    in: z.object({ value: z.unknown(), turns: z.int().min(0).default(0) }),
    out: z.object({ value: z.unknown() }),
  },
  "work.wait": { since: 1, doc: "Works until it is stopped.", in: z.object({}), out: z.object({}), timeoutMs: 40 },
  "text.make": { since: 1, doc: "Makes text.", in: z.object({ chars: z.int() }), out: z.object({ text: z.string() }) },
  "fault.throw": {
    since: 1,
    doc: "Fails.",
    in: z.object({ kind: z.enum(["fault", "bug", "text", "shape", "huge", "long", "bigint"]) }),
    out: z.object({}),
  },
  "count.up": {
    since: 1,
    doc: "Counts.",
    in: z.object({
      after: z.int().min(0).default(0),
      last: z.int(),
      fill: z.string().default(""),
      times: z.int().default(1),
      thenWaits: z.boolean().default(false),
    }),
    each: z.object({ n: z.int(), fill: z.string() }),
  },
  "count.badly": {
    since: 1,
    doc: "A feed whose items have the wrong shape.",
    in: z.object({}),
    each: z.object({ n: z.int() }),
  },
  "pipe.open": {
    since: 1,
    doc: "Bytes and messages both ways.",
    in: z.object({ mode: z.enum(pipeModes).default("echo"), bytes: z.int().default(64 * 1024) }),
    up: z.object({ op: z.string() }),
    down: z.object({ ev: z.string() }),
  },
})

export type Wire = typeof wire

export class Answers implements PipeRecord {
  /** What happened inside the handlers, in order. */
  readonly events: string[] = []
  /** Items that feeds have handed over. */
  produced = 0
  /** Something a handler waits for after it was told to stop, so that a test decides when it has stopped. */
  stopping: Promise<void> = Promise.resolve()

  handlers(): Handlers<Wire> {
    return {
      "echo.say": async ({ value, turns }, { signal }) => {
        for (let turn = 0; turn < turns; turn++) {
          signal.throwIfAborted()
          await new Promise(setImmediate)
        }
        return { value }
      },
      "work.wait": async (_, { signal }) => {
        this.events.push("started")
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }))
        await this.stopping
        this.events.push("stopped")
        throw signal.reason
      },
      "text.make": ({ chars }) => Promise.resolve({ text: "x".repeat(chars) }),
      "fault.throw": ({ kind }) => fail(kind),
      "count.up": (input, { signal }) => this.#count(input, signal),
      "pipe.open": (input, context) => openPipe(this, input, context),
      "count.badly": async function* () {
        yield { seq: 1, item: { n: "one" } as unknown as { n: number } }
      },
    }
  }

  async *#count({ after, last, fill, times, thenWaits }: Received<Wire, "count.up">, signal: AbortSignal) {
    try {
      for (let n = after + 1; n <= last; n++) {
        signal.throwIfAborted()
        this.produced++
        yield { seq: n, item: { n, fill: fill.repeat(times) } }
      }
      if (thenWaits && !signal.aborted)
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }))
    } finally {
      this.events.push("feed over")
    }
  }
}

function fail(kind: string): Promise<never> {
  const made: Record<string, () => unknown> = {
    fault: () => new Fault("conflict", "no", { hint: "try later", subject: "thing:1", cause: new Error("hunter2") }),
    bug: () => new TypeError("password=hunter2"),
    text: () => "password=hunter2",
    huge: () => new Fault("conflict", '"'.repeat(2 * 1024 * 1024)),
    long: () => new Fault("conflict", "m".repeat(20_000), { hint: "h".repeat(20_000), subject: "s".repeat(20_000) }),
  }
  const make = made[kind]
  if (make) return Promise.reject(make())
  return Promise.resolve(kind === "bigint" ? { n: 1n } : 5) as Promise<never>
}

/** A server end on a real socket. */
export class Served implements AsyncDisposable {
  readonly answers = new Answers()
  readonly logged: Record<string, unknown>[] = []
  readonly connection: RpcConnection<Wire>
  readonly socket: Socket
  readonly peer: Socket
  readonly #pair: SocketPair

  protected constructor(pair: SocketPair) {
    this.#pair = pair
    this.socket = pair.right
    this.peer = pair.left
    const log = createLog((line) => this.logged.push(JSON.parse(line) as Record<string, unknown>))
    const options = { contract: wire, handlers: this.answers.handlers(), log, build: "test" }
    this.connection = new RpcConnection(pair.right, { name: "tester" }, options)
  }

  static async start(): Promise<Served> {
    return new Served(await SocketPair.make())
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.connection[Symbol.asyncDispose]()
    await this.#pair[Symbol.asyncDispose]()
  }
}

/** Both ends on a real socket. */
export class System extends Served {
  readonly client: RpcClient<Wire>

  private constructor(pair: SocketPair) {
    super(pair)
    this.client = new RpcClient(pair.left, wire, "test")
  }

  static override async start(): Promise<System> {
    return new System(await SocketPair.make())
  }

  /** Waits until nothing is going on, at either end. */
  quiet(): Promise<void> {
    return eventually(() => this.client.waiting === 0 && this.connection.inFlight === 0)
  }
}

/** A peer that speaks in frames, by hand. */
export class RawPeer {
  readonly messages: Readonly<Record<string, unknown>>[] = []
  /** Stream frames: their tags and bytes. */
  readonly chunks: { tag: number; bytes: Buffer }[] = []
  readonly socket: Socket
  isClosed = false

  constructor(socket: Socket) {
    this.socket = socket
    const decoder = new FrameDecoder()
    socket.on("data", (chunk: Buffer) => decoder.push(chunk, (body) => this.#keep(Buffer.from(body))))
    socket.on("error", () => undefined)
    socket.on("close", () => (this.isClosed = true))
  }

  #keep(body: Buffer): void {
    if (isJson(body)) this.messages.push(decodeJson(body))
    else this.chunks.push({ tag: body[0] ?? 0, bytes: body.subarray(1) })
  }

  hello(): this {
    return this.send({ hello: { version: 1 } })
  }

  send(...messages: object[]): this {
    this.socket.write(Buffer.concat(messages.map(encodeJson)))
    return this
  }

  /** The first message that carries this id. */
  async answer(id: number): Promise<Readonly<Record<string, unknown>>> {
    const find = (): Readonly<Record<string, unknown>> | undefined =>
      this.messages.find((message) => message["id"] === id)
    await eventually(() => find() !== undefined || this.isClosed)
    return find() ?? { closed: true }
  }
}
