import { Fault } from "@warren/base/fault.ts"
import { frameLimits, type StreamTag } from "@warren/base/frame.ts"
import { Backlog } from "../backlog.ts"
import type { Stream } from "../contract.ts"
import { Chunk, type Conversation } from "../conversation.ts"
import { describeIssues } from "../issues.ts"
import { untilAborted } from "../until-aborted.ts"
import { rpcLimits } from "./wire.ts"

/** The most bytes in one frame: one more is its tag. */
const frameBytesMax = frameLimits.streamBytesMax - 1

type AnyConversation = Conversation<unknown, unknown>

/** What a stream is carried on: a socket with frames, a WebSocket. */
export interface Line {
  readonly isOpen: boolean
  /** The handler has taken it on. */
  opened(): void
  /** Waits while the caller does not take more. */
  say(message: unknown): Promise<void>
  /** Resolves when the memory of the bytes may be used again. */
  lend(tag: StreamTag, bytes: Buffer): Promise<void>
  /** Something to write while nothing is read, so that it shows when the caller has gone. */
  held(): void
  pause(): void
  resume(): void
}

/** The server's end of a stream: carries what a conversation says to its caller, and what the caller says to it. */
export class ServedStream {
  readonly #line: Line
  readonly #entry: Stream
  readonly #backlog: Backlog<Buffer | { readonly say: unknown }>
  #isOver = false
  #heldTimer: NodeJS.Timeout | undefined

  constructor(line: Line, entry: Stream) {
    this.#line = line
    this.#entry = entry
    this.#backlog = new Backlog({ pause: () => this.#hold(), resume: () => this.#letGo() })
  }

  /** A message from the caller. What is wrong with it is thrown here. */
  receive(message: unknown, bytes: number): void {
    const checked = this.#entry.up.safeParse(message)
    if (!checked.success) throw new Fault("invalid", describeIssues(checked.error))
    this.#backlog.add({ say: checked.data }, bytes)
  }

  /** Bytes from the caller. Their memory is used again, so they are copied. */
  receiveBytes(bytes: Buffer): void {
    this.#backlog.add(Buffer.from(bytes), bytes.length)
  }

  /** Resolves when the conversation is over and has ended what it was about; throws what ended it, or the signal's reason. */
  async run(conversation: AnyConversation, signal: AbortSignal): Promise<void> {
    const aborted = untilAborted(signal)
    try {
      signal.throwIfAborted()
      this.#line.opened()
      // Neither a handler that does not heed its signal nor one that does not take what is written holds this up.
      await Promise.race([this.#carryDown(conversation), this.#carryUp(conversation), aborted.promise])
    } finally {
      aborted.forget()
      this.close()
      await conversation[Symbol.asyncDispose]()
    }
  }

  /** Nothing of what the caller says is wanted any more. */
  close(): void {
    this.#isOver = true
    this.#backlog.drop(over)
  }

  async #carryDown(conversation: AnyConversation): Promise<void> {
    // A handler that answers at once, for ever, would otherwise never let anybody else have a turn.
    while (!this.#isOver && this.#line.isOpen) {
      const item = await conversation.next()
      if (item === undefined) return
      if (item instanceof Chunk) await this.#sendBytes(item)
      else await this.#line.say(this.#entry.down.parse(item))
    }
    await forever()
  }

  /** A piece is lent until the next is asked for, so it has to have left by then. That costs less than a copy of it. */
  async #sendBytes({ tag, bytes }: Chunk): Promise<void> {
    for (let at = 0; at < bytes.length; at += frameBytesMax) {
      await this.#line.lend(tag, bytes.subarray(at, at + frameBytesMax))
    }
  }

  /** Only ever ends by throwing: a caller with nothing more to say still listens. */
  async #carryUp(conversation: AnyConversation): Promise<void> {
    try {
      for (;;) {
        const item = await this.#backlog.next()
        if ("say" in item) conversation.send(item.say)
        else await conversation.write(item)
      }
    } catch (thrown) {
      if (thrown !== over) throw thrown
      await forever()
    }
  }

  /**
   * A socket that is not read does not tell that its peer has gone; one that is written to does. So while the caller is held
   * back it is told so, again and again.
   */
  #hold(): void {
    this.#line.pause()
    this.#heldTimer = setInterval(() => this.#line.held(), rpcLimits.heldMs)
  }

  #letGo(): void {
    clearInterval(this.#heldTimer)
    this.#line.resume()
  }
}

const over = Symbol("nothing more is read")

/** Waited for by what only a signal ends. One for each: a promise remembers everybody who waits for it. */
function forever(): Promise<never> {
  return new Promise(() => undefined)
}
