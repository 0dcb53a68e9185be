import { streamTags } from "@warren/base/frame.ts"
import { Fault } from "@warren/base/fault.ts"
import type { Down } from "@warren/protocol/contract.ts"
import { Chunk, type Conversation } from "@warren/protocol/conversation.ts"
import type { workspaceCalls } from "@warren/protocol/user-plane/workspaces.ts"
import type { Entry } from "./entry.ts"
import type { OpenFile } from "./open-file.ts"

type Written = Down<typeof workspaceCalls, "workspace.write">

/** The bytes of a file on their way out. */
export class WorkspaceDownload implements Conversation<never, never> {
  readonly #file: OpenFile
  readonly #pieces: AsyncIterator<Uint8Array>

  constructor(file: OpenFile) {
    this.#file = file
    this.#pieces = file.bytes()
  }

  async next(): Promise<Chunk | undefined> {
    const piece = await this.#pieces.next()
    if (piece.done) return undefined
    const { buffer, byteOffset, length } = piece.value
    return new Chunk(streamTags.raw, Buffer.from(buffer, byteOffset, length))
  }

  send(): void {
    throw new Fault("unsupported", "a file that is read takes nothing")
  }

  write(): Promise<void> {
    return Promise.reject(new Fault("unsupported", "a file that is read takes nothing"))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file[Symbol.asyncDispose]()
  }
}

/** The bytes of a file on their way in. Left before its end, nothing of it is there. */
export class WorkspaceUpload implements Conversation<{ op: "eof" }, Written> {
  readonly #written: Promise<Entry>
  #waiting: { readonly bytes: Uint8Array; taken(): void } | undefined
  #end: "eof" | "left" | undefined
  #wake: (() => void) | undefined
  #isOver = false

  constructor(write: (bytes: AsyncIterable<Uint8Array>) => Promise<Entry>) {
    this.#written = write(this.#pieces())
    // Told to whoever asks for it with `next`.
    this.#written.catch(() => this.#waiting?.taken())
  }

  async next(): Promise<Written | undefined> {
    if (this.#isOver) return undefined
    const entry = await this.#written
    this.#isOver = true
    return { ev: "written", entry }
  }

  send(): void {
    this.#finish("eof")
  }

  async write(bytes: Uint8Array): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#waiting = { bytes, taken: resolve }
      this.#wake?.()
      this.#written.catch(() => resolve())
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#finish("left")
    await this.#written.catch(() => undefined)
  }

  #finish(how: "eof" | "left"): void {
    this.#end ??= how
    this.#wake?.()
  }

  async *#pieces(): AsyncGenerator<Uint8Array, void, void> {
    for (;;) {
      const waiting = this.#waiting
      if (waiting) {
        this.#waiting = undefined
        yield waiting.bytes
        waiting.taken()
      } else if (this.#end === "eof") return
      else if (this.#end === "left") throw new Fault("cancelled", "the writer went away")
      else await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }
}
