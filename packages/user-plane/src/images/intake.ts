import { mkdtemp, open, rm, type FileHandle } from "node:fs/promises"
import { join } from "node:path"
import { errnoOf, Fault } from "@warren/base/fault.ts"
import type { Conversation } from "@warren/protocol/conversation.ts"

/** What is done with a file that was sent. */
export type Work<Told> = (file: string, tell: (told: Told) => void, signal: AbortSignal) => Promise<void>

/** A file that comes in, and what is told while something is made of it. */
export class Intake<Told extends object> implements Conversation<{ op: "eof" }, Told> {
  readonly #folder: string
  readonly #file: FileHandle
  readonly #work: Work<Told>
  readonly #signal: AbortSignal
  readonly #stop = new AbortController()
  readonly #told: Told[] = []
  #written: Promise<void> = Promise.resolve()
  #working: Promise<void> | undefined
  #isDone = false
  #failure: { readonly thrown: unknown } | undefined
  #wake: (() => void) | undefined

  private constructor(folder: string, file: FileHandle, work: Work<Told>, signal: AbortSignal) {
    this.#folder = folder
    this.#file = file
    this.#work = work
    this.#signal = AbortSignal.any([signal, this.#stop.signal])
    this.#signal.addEventListener("abort", () => this.#fail(this.#signal.reason), { once: true })
  }

  static async open<Told extends object>(
    scratch: string,
    work: Work<Told>,
    signal: AbortSignal,
  ): Promise<Intake<Told>> {
    const folder = await mkdtemp(join(scratch, "intake-"))
    return new Intake(folder, await open(join(folder, "file"), "wx", 0o600), work, signal)
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

  /** One after the other. A stream to a file would end the process when somebody leaves while it writes. */
  write(bytes: Uint8Array): Promise<void> {
    this.#written = this.#written.then(() => this.#append(bytes))
    this.#written.catch(() => undefined)
    return this.#written
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#working
    await this.#file.close()
    await rm(this.#folder, { recursive: true, force: true })
  }

  async #append(bytes: Uint8Array): Promise<void> {
    this.#signal.throwIfAborted()
    try {
      await this.#file.appendFile(bytes)
    } catch (cause) {
      if (errnoOf(cause) !== "ENOSPC" && errnoOf(cause) !== "EDQUOT") throw cause
      throw new Fault("limit", "what was sent does not fit on the disk", { cause })
    }
  }

  async #begin(): Promise<void> {
    try {
      await this.#written
      this.#signal.throwIfAborted()
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
