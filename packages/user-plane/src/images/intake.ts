import { createWriteStream, type WriteStream } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { once } from "node:events"
import { join } from "node:path"
import type { Conversation } from "@warren/protocol/conversation.ts"

/** What is done with a file that was sent. */
export type Work<Told> = (file: string, tell: (told: Told) => void, signal: AbortSignal) => Promise<void>

/** A file that comes in, and what is told while something is made of it. */
export class Intake<Told extends object> implements Conversation<{ op: "eof" }, Told> {
  readonly #folder: string
  readonly #file: WriteStream
  readonly #work: Work<Told>
  readonly #signal: AbortSignal
  readonly #stop = new AbortController()
  readonly #told: Told[] = []
  #working: Promise<void> | undefined
  #isDone = false
  #failure: { readonly thrown: unknown } | undefined
  #wake: (() => void) | undefined

  private constructor(folder: string, work: Work<Told>, signal: AbortSignal) {
    this.#folder = folder
    this.#file = createWriteStream(join(folder, "file"), { mode: 0o600 })
    this.#work = work
    this.#signal = AbortSignal.any([signal, this.#stop.signal])
    this.#signal.addEventListener("abort", () => this.#fail(this.#signal.reason), { once: true })
  }

  static async open<Told extends object>(
    scratch: string,
    work: Work<Told>,
    signal: AbortSignal,
  ): Promise<Intake<Told>> {
    return new Intake(await mkdtemp(join(scratch, "intake-")), work, signal)
  }

  async next(): Promise<Told | undefined> {
    for (;;) {
      const told = this.#told.shift()
      if (told) return told
      if (this.#failure) throw this.#failure.thrown
      if (this.#isDone) return undefined
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  /** All of it has been sent. */
  send(): void {
    this.#working ??= this.#begin()
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (!this.#file.write(Buffer.from(bytes))) await once(this.#file, "drain", { signal: this.#signal })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    this.#file.destroy()
    await this.#working
    await rm(this.#folder, { recursive: true, force: true })
  }

  async #begin(): Promise<void> {
    try {
      this.#file.end()
      await once(this.#file, "close", { signal: this.#signal })
      await this.#work(join(this.#folder, "file"), (told) => this.#tell(told), this.#signal)
      this.#isDone = true
    } catch (thrown) {
      this.#fail(thrown)
    }
    this.#wake?.()
  }

  #tell(told: Told): void {
    this.#told.push(told)
    this.#wake?.()
  }

  #fail(thrown: unknown): void {
    this.#failure ??= { thrown }
    this.#wake?.()
  }
}
