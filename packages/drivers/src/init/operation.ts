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

  constructor(stream: Duplex, request: Request, signal?: AbortSignal) {
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
    if (!(item instanceof Chunk) && item.ev === "fault") throw faultOf(item)
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

export function faultOf(event: { code: string; message: string; errno?: number | undefined }): Fault {
  const code = Object.hasOwn(faultCodes, event.code) ? (event.code as FaultCode) : "internal"
  const name = event.errno === undefined ? undefined : getSystemErrorMap().get(-event.errno)?.[0]
  return new Fault(code, event.message, name === undefined ? {} : { subject: `errno:${name}` })
}
