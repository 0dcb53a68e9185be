import { Fault } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import { endOfBytes, type Conversation } from "@warren/protocol/conversation.ts"
import type { Asking } from "./asking.ts"

const bytesMax = 64 * 1024 * 1024

/** Output that is too long to be told, written into the session it came from: there it can be read a part at a time. */
export class Spill implements AsyncDisposable {
  readonly path = `/tmp/warren-output/${newId("out").slice(4)}.txt`
  readonly #asking: Asking
  readonly #session: string
  #file: Conversation<{ op: "eof" }, unknown> | undefined
  #bytes = 0
  #failed = false

  constructor(asking: Asking, session: string) {
    this.#asking = asking
    this.#session = session
  }

  async add(bytes: Uint8Array): Promise<void> {
    if (this.#failed) return
    try {
      this.#file ??= await this.#asking.stream("file.write", { session: this.#session, path: this.path })
      const room = bytes.subarray(0, bytesMax - this.#bytes)
      this.#bytes += room.length
      if (room.length > 0) await this.#file.write(room)
    } catch (thrown) {
      this.#giveUp(thrown)
    }
  }

  /** Whether it is there now. */
  async end(): Promise<boolean> {
    if (!this.#file || this.#failed) return false
    try {
      this.#file.send(endOfBytes)
      while ((await this.#file.next()) !== undefined);
      return true
    } catch (thrown) {
      this.#giveUp(thrown)
      return false
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file?.[Symbol.asyncDispose]()
  }

  /** A token that may not write, a full disk: the command itself went well, and is told without it. */
  #giveUp(thrown: unknown): void {
    this.#asking.signal.throwIfAborted()
    if (Fault.from(thrown).code === "internal") throw thrown
    this.#failed = true
  }
}
