import type { Duplex } from "node:stream"
import { getSystemErrorMap } from "node:util"
import { Fault, faultCodes, type FaultCode } from "@warren/base/fault.ts"
import { decodeJson, encodeJson } from "@warren/base/frame.ts"
import { Chunk } from "@warren/protocol/conversation.ts"
import { Framed } from "@warren/protocol/framed.ts"
import { InitEvent, type InitControl, type InitRequest } from "@warren/protocol/init.ts"
import type { z } from "zod"

export type Request = z.input<typeof InitRequest>
export type Control = z.input<typeof InitControl>
export type Event = z.output<typeof InitEvent>

/**
 * One operation on one connection to init. init is not trusted: everything it says is checked, and what does not fit
 * ends the operation.
 */
export class Operation implements AsyncDisposable {
  readonly #framed: Framed<Event>
  readonly #request: Request

  constructor(stream: Duplex, request: Request, signal?: AbortSignal) {
    this.#request = request
    this.#framed = new Framed(stream, decode, signal)
    this.#framed.send(request)
  }

  /** The first frame alone, for an operation after which the connection carries no frames (`connect`). */
  static request(request: Request): Buffer {
    return encodeJson(request)
  }

  control(message: Control): void {
    this.#framed.send(message)
  }

  /** Waits while the sandbox does not take more. */
  write(bytes: Uint8Array): Promise<void> {
    return this.#framed.write(bytes)
  }

  /** The next thing init says. A refusal, a lost connection and a cancellation are thrown. */
  async next(): Promise<Event | Chunk> {
    const item = await this.#framed.next()
    if (!(item instanceof Chunk) && item.ev === "fault") throw faultOf(item, this.#request)
    return item
  }

  /** The next event, when no bytes are expected. */
  async event<Kind extends Event["ev"]>(...kinds: Kind[]): Promise<Extract<Event, { ev: Kind }>> {
    for (;;) {
      const item = await this.next()
      if (item instanceof Chunk) throw new Fault("internal", `init answered bytes instead of ${kinds.join(" or ")}`)
      if ((kinds as string[]).includes(item.ev)) return item as Extract<Event, { ev: Kind }>
      if (item.ev !== "warn") throw new Fault("internal", `init answered ${item.ev} instead of ${kinds.join(" or ")}`)
    }
  }

  /** Nothing more comes; resolves when init has taken what was sent and gone. */
  finish(): Promise<void> {
    return this.#framed.finish()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#framed[Symbol.asyncDispose]()
  }
}

export function decode(body: Buffer): Event {
  const event = InitEvent.safeParse(decodeJson(body))
  if (!event.success) throw new Fault("internal", "init sent a message that is not one", { cause: event.error })
  return event.data
}

type Refusal = Extract<Event, { ev: "fault" }>

/** Of a request, by what a refusal of it can be about. */
interface Named {
  readonly op?: string
  readonly path?: string | undefined
  readonly from?: string | undefined
  readonly argv?: readonly string[] | undefined
  readonly cwd?: string | undefined
}

export function faultOf({ code: word, message, errno }: Refusal, request: Named = {}): Fault {
  const code = Object.hasOwn(faultCodes, word) ? (word as FaultCode) : "internal"
  if (errno === undefined) return new Fault(code, message)
  const [name] = getSystemErrorMap().get(-errno) ?? []
  return new Fault(code, withName(message, request), name === undefined ? {} : { subject: `errno:${name}` })
}

/** init says what was wrong; what with, whoever asked knows. */
function withName(message: string, request: Named): string {
  const { argv, cwd, from, path = from } = request
  const [word = "", ...why] = message.split(": ")
  const named: Readonly<Record<string, string | undefined>> = { program: argv?.[0], "working directory": cwd }
  if (why.length > 0 && named[word] !== undefined) return [named[word], ...why].join(": ")
  return path === undefined ? message : `${path}: ${message}`
}
