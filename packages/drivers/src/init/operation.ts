import type { Duplex } from "node:stream"
import { getSystemErrorMap } from "node:util"
import { Fault, faultCodes, type FaultCode } from "@warren/base/fault.ts"
import { FrameChannel } from "@warren/base/frame-channel.ts"
import { decodeJson, encodeJson, streamTags, type StreamTag } from "@warren/base/frame.ts"
import { isRecycling } from "@warren/base/unix-socket.ts"
import { InitEvent, type InitControl, type InitRequest } from "@warren/protocol/init.ts"
import type { z } from "zod"

export type Request = z.input<typeof InitRequest>
export type Control = z.input<typeof InitControl>
export type Event = z.output<typeof InitEvent>
/** Raw bytes that init sent. They are good until the next thing is asked for; who keeps them copies them. */
export class Chunk {
  readonly tag: StreamTag
  readonly bytes: Buffer

  constructor(tag: StreamTag, bytes: Buffer) {
    this.tag = tag
    this.bytes = bytes
  }
}

/** Received bytes kept for a reader that is slow; past this the socket is not read, and the kernel holds init back. */
const keptBytesMax = 1024 * 1024

/**
 * One operation on one connection to init. init is not trusted: everything it says is checked, and what does not fit
 * ends the operation.
 */
export class Operation implements AsyncDisposable {
  readonly #channel: FrameChannel
  readonly #signal: AbortSignal | undefined
  readonly #stream: Duplex
  /** How many chunks of each piece of memory are still to be read. */
  readonly #uses = new Map<ArrayBufferLike, number>()
  #items: (Event | Chunk)[] = []
  #taken: Chunk | undefined
  #keptBytes = 0
  #end: { readonly fault: unknown } | undefined
  #wake: (() => void) | undefined
  readonly #abort = (): void => this.#finish(this.#signal?.reason)

  constructor(stream: Duplex, request: Request, signal?: AbortSignal) {
    this.#signal = signal
    this.#stream = stream
    this.#channel = new FrameChannel(stream, {
      body: (body) => this.#receive(body),
      bytes: (tag, bytes) => this.#keep(tag, bytes),
      end: (fault) => this.#finish(fault ?? new Fault("unavailable", "the sandbox closed the connection")),
    })
    if (signal?.aborted) this.#abort()
    else signal?.addEventListener("abort", this.#abort, { once: true })
    this.#channel.send(request)
  }

  /** The first frame alone, for an operation after which the connection carries no frames (`connect`). */
  static request(request: Request): Buffer {
    return encodeJson(request)
  }

  control(message: Control): void {
    this.#channel.send(message)
  }

  /** Waits while the sandbox does not take more. */
  async write(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      this.#channel.sendBytes(streamTags.stdin, bytes.subarray(at, at + pieceBytes))
      await this.#channel.room()
      if (!this.#channel.isOpen) return
    }
  }

  /** The next thing init says. A refusal, a lost connection and a cancellation are thrown. */
  async next(): Promise<Event | Chunk> {
    if (this.#taken) this.#release(this.#taken)
    this.#taken = undefined
    for (;;) {
      const item = this.#items.shift()
      if (item) {
        if (item instanceof Chunk) this.#taken = item
        else if (item.ev === "fault") throw faultOf(item)
        return item
      }
      if (this.#end) throw this.#end.fault
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
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

  [Symbol.asyncDispose](): Promise<void> {
    this.#signal?.removeEventListener("abort", this.#abort)
    this.#channel.close()
    return Promise.resolve()
  }

  #receive(body: Buffer): void {
    const event = InitEvent.safeParse(decodeJson(body))
    if (!event.success) throw new Fault("internal", "init sent a message that is not one", { cause: event.error })
    this.#items.push(event.data)
    this.#awake()
  }

  #keep(tag: StreamTag, bytes: Buffer): void {
    this.#items.push(new Chunk(tag, bytes))
    this.#uses.set(bytes.buffer, (this.#uses.get(bytes.buffer) ?? 0) + 1)
    this.#keptBytes += bytes.length
    if (this.#keptBytes > keptBytesMax) this.#channel.pause()
    this.#awake()
  }

  /** The reader is done with a chunk: its memory goes back when no other chunk is in it. */
  #release({ bytes }: Chunk): void {
    const uses = (this.#uses.get(bytes.buffer) ?? 1) - 1
    if (uses > 0) this.#uses.set(bytes.buffer, uses)
    else {
      this.#uses.delete(bytes.buffer)
      if (isRecycling(this.#stream)) this.#stream.recycle(bytes.buffer)
    }
    this.#keptBytes -= bytes.length
    if (this.#keptBytes <= keptBytesMax / 2) this.#channel.resume()
  }

  #finish(fault: unknown): void {
    this.#end ??= { fault }
    this.#channel?.close()
    this.#awake()
  }

  #awake(): void {
    this.#wake?.()
    this.#wake = undefined
  }
}

const pieceBytes = 128 * 1024

function faultOf(event: { code: string; message: string; errno?: number | undefined }): Fault {
  const code = Object.hasOwn(faultCodes, event.code) ? (event.code as FaultCode) : "internal"
  const name = event.errno === undefined ? undefined : getSystemErrorMap().get(-event.errno)?.[0]
  return new Fault(code, event.message, name === undefined ? {} : { subject: `errno:${name}` })
}
