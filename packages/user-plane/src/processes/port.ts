import type { Duplex } from "node:stream"
import { drained } from "@warren/base/drained.ts"
import { streamTags } from "@warren/base/frame.ts"
import { connectPort } from "@warren/drivers/init/port.ts"
import type { Down, Up } from "@warren/protocol/contract.ts"
import { Chunk, type Conversation } from "@warren/protocol/conversation.ts"
import type { processCalls } from "@warren/protocol/user-plane/processes.ts"
import type { Use } from "../sessions/use.ts"

type Told = Down<typeof processCalls, "port.connect">
type Said = Up<typeof processCalls, "port.connect">

/** A connection to something that listens inside. */
export class Port implements Conversation<Said, Told> {
  readonly #use: Use
  readonly #stream: Duplex
  readonly #pieces: AsyncIterator<Buffer>
  #hasGreeted = false

  private constructor(use: Use, stream: Duplex) {
    this.#use = use
    this.#stream = stream
    this.#pieces = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  }

  /** Takes over the use. */
  static async open(use: Use, port: number, signal: AbortSignal): Promise<Port> {
    try {
      return new Port(use, await connectPort(use.live.sandbox, { port }, signal))
    } catch (failure) {
      use[Symbol.dispose]()
      throw failure
    }
  }

  async next(): Promise<Told | Chunk | undefined> {
    if (!this.#hasGreeted) {
      this.#hasGreeted = true
      return { ev: "connected" }
    }
    const piece = await this.#pieces.next()
    return piece.done ? undefined : new Chunk(streamTags.raw, piece.value)
  }

  /** Nothing more will be sent; what comes back is still read. */
  send(): void {
    this.#stream.end()
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (this.#stream.destroyed) return
    if (!this.#stream.write(Buffer.from(bytes))) await drained(this.#stream)
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#stream.destroy()
    this.#use[Symbol.dispose]()
    return Promise.resolve()
  }
}
