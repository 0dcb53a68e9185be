import { Fault } from "@warren/base/fault.ts"
import type { Runner } from "../runner/runner.ts"
import { upload } from "../runner/upload.ts"
import { ifAny, runInside, type Entry, type InsideFiles } from "./inside.ts"

const entriesMax = 5_000

/** The files of a session, as the wire gives them. */
export class SessionFiles implements InsideFiles {
  readonly #runner: Runner
  readonly #session: string
  readonly #as: { user?: string }

  constructor(runner: Runner, session: string, as: string | undefined) {
    this.#runner = runner
    this.#session = session
    this.#as = as === undefined ? {} : { user: as }
  }

  stat(path: string): Promise<Entry> {
    return this.#runner.call("file.stat", this.#at(path))
  }

  statIfAny(path: string): Promise<Entry | undefined> {
    return ifAny(this.stat(path))
  }

  /** What lies directly in a folder. */
  async list(path: string): Promise<readonly Entry[]> {
    const { entries, truncated } = await this.#runner.call("file.list", { ...this.#at(path), limit: entriesMax })
    if (truncated)
      throw new Fault("limit", `${path} holds more than ${entriesMax} entries`, { hint: "copy an archive of it" })
    return entries
  }

  async *read(path: string): AsyncGenerator<Buffer> {
    await using conversation = await this.#runner.open("file.read", this.#at(path))
    for (let item = await conversation.next(); item !== undefined; item = await conversation.next()) {
      yield item.bytes
    }
  }

  async write(path: string, source: AsyncIterable<Uint8Array>, mode?: number): Promise<void> {
    const wanted = mode === undefined ? {} : { mode }
    await using conversation = await this.#runner.open("file.write", { ...this.#at(path), ...wanted })
    await upload(conversation, source, () => undefined)
  }

  async mkdir(path: string): Promise<void> {
    await this.#runner.call("file.mkdir", this.#at(path))
  }

  run(argv: readonly string[]): Promise<boolean> {
    return runInside(this.#runner, { session: this.#session, argv: [...argv], ...this.#as })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve()
  }

  #at(path: string) {
    return { session: this.#session, ...this.#as, path }
  }
}
