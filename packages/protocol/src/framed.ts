import type { Duplex } from "node:stream"
import { Fault } from "@warren/base/fault.ts"
import { FrameChannel } from "@warren/base/frame-channel.ts"
import { streamTags, type StreamTag } from "@warren/base/frame.ts"
import { isRecycling } from "@warren/base/unix-socket.ts"
import { Backlog } from "./backlog.ts"
import { Chunk } from "./conversation.ts"

/** Bytes are sent in pieces no larger than this; a frame takes twice as much. */
const pieceBytes = 128 * 1024

/**
 * Messages and bytes of one operation on one connection, read one by one. The peer is not trusted: what `decode` throws ends
 * the operation.
 */
export class Framed<Message extends object> implements AsyncDisposable {
  readonly #channel: FrameChannel
  readonly #signal: AbortSignal | undefined
  readonly #stream: Duplex
  readonly #backlog: Backlog<Message | Chunk>
  /** How many chunks of each piece of memory are still to be read. */
  readonly #uses = new Map<ArrayBufferLike, number>()
  #taken: Chunk | undefined
  readonly #abort = (): void => this.fail(this.#signal?.reason)

  constructor(stream: Duplex, decode: (body: Buffer) => Message, signal?: AbortSignal) {
    this.#signal = signal
    this.#stream = stream
    this.#backlog = new Backlog({ pause: () => stream.pause(), resume: () => stream.resume() })
    this.#channel = new FrameChannel(stream, {
      body: (body) => this.#backlog.add(decode(body), body.length),
      bytes: (tag, bytes) => this.#keep(tag, bytes),
      end: (fault) =>
        this.#backlog.end(() => fault ?? new Fault("unavailable", "the other side closed the connection")),
    })
    if (signal?.aborted) this.#abort()
    else signal?.addEventListener("abort", this.#abort, { once: true })
  }

  send(message: object): void {
    this.#channel.send(message)
  }

  /** Waits while the peer does not take more. */
  async write(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      this.#channel.sendBytes(streamTags.stdin, bytes.subarray(at, at + pieceBytes))
      await this.#channel.room()
      if (!this.#channel.isOpen) return
    }
  }

  /** The next thing the peer says. A lost connection and a cancellation are thrown. */
  async next(): Promise<Message | Chunk> {
    if (this.#taken) this.#release(this.#taken)
    this.#taken = undefined
    const item = await this.#backlog.next()
    if (item instanceof Chunk) this.#taken = item
    return item
  }

  /** Says that nothing more comes, and waits until the peer has taken everything and gone. */
  async finish(): Promise<void> {
    this.#channel.finish()
    try {
      for (;;) await this.next()
    } catch {
      // It is over.
    }
    this.#signal?.throwIfAborted()
  }

  /** Ends it at once: what was not read yet is not read any more. */
  fail(reason: unknown): void {
    this.#backlog.drop(reason)
    this.#channel?.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#signal?.removeEventListener("abort", this.#abort)
    this.#channel.close()
    return Promise.resolve()
  }

  /** A piece is counted as the memory it came in: one byte may be all there is in a quarter of a mebibyte. */
  #keep(tag: StreamTag, bytes: Buffer): void {
    const uses = this.#uses.get(bytes.buffer) ?? 0
    this.#uses.set(bytes.buffer, uses + 1)
    if (uses === 0) this.#backlog.charge(bytes.buffer.byteLength)
    this.#backlog.add(new Chunk(tag, bytes), 0)
  }

  /** The reader is done with a chunk: its memory goes back when no other chunk is in it. */
  #release({ bytes }: Chunk): void {
    const uses = (this.#uses.get(bytes.buffer) ?? 1) - 1
    if (uses > 0) return void this.#uses.set(bytes.buffer, uses)
    this.#uses.delete(bytes.buffer)
    this.#backlog.charge(-bytes.buffer.byteLength)
    if (isRecycling(this.#stream)) this.#stream.recycle(bytes.buffer)
  }
}
