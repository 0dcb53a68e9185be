import { Duplex } from "node:stream"
import { Chunk, endOfBytes } from "@warren/protocol/conversation.ts"
import type { Plane } from "../plane.ts"

type Conversation = Awaited<ReturnType<typeof openPort>>

function openPort(plane: Plane, session: string, port: number) {
  return plane.stream("port.connect", { session, port })
}

/** A connection to what listens inside, as the HTTP of this process knows connections. */
export class PortStream extends Duplex {
  readonly #conversation: Conversation
  #isReading = false

  private constructor(conversation: Conversation) {
    super()
    this.#conversation = conversation
  }

  static async open(plane: Plane, session: string, port: number): Promise<PortStream> {
    const conversation = await openPort(plane, session, port)
    await conversation.next()
    return new PortStream(conversation)
  }

  /** Asked of every connection by HTTP, and of no use for one without an address. */
  setNoDelay = (): this => this
  setKeepAlive = (): this => this
  setTimeout = (): this => this
  ref = (): this => this
  unref = (): this => this

  override _read(): void {
    if (this.#isReading) return
    this.#isReading = true
    void this.#pour()
  }

  override _write(bytes: Buffer, _: string, done: (failure?: Error | null) => void): void {
    this.#conversation.write(bytes).then(() => done(), done)
  }

  override _final(done: () => void): void {
    this.#conversation.send(endOfBytes)
    done()
  }

  override _destroy(failure: Error | null, done: (failure?: Error | null) => void): void {
    this.#conversation[Symbol.asyncDispose]().then(
      () => done(failure),
      () => done(failure),
    )
  }

  async #pour(): Promise<void> {
    try {
      for (;;) {
        const item = await this.#conversation.next()
        if (item === undefined) return void this.push(null)
        if (item instanceof Chunk && !this.push(Buffer.from(item.bytes))) break
      }
      this.#isReading = false
    } catch (failure) {
      this.destroy(failure as Error)
    }
  }
}
