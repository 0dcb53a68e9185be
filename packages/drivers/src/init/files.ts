import { Fault } from "@warren/base/fault.ts"
import { Entry, type InitRequest } from "@warren/protocol/init.ts"
import { z } from "zod"
import type { Sandbox } from "../driver.ts"
import { ask } from "./ask.ts"
import { Chunk } from "@warren/protocol/conversation.ts"
import { Operation, type Event } from "./operation.ts"

type Asked<Op extends string> = Omit<Extract<z.input<typeof InitRequest>, { op: Op }>, "op" | "path">
export type FileEntry = z.output<typeof Entry>
export type FileChange = Omit<Extract<Event, { ev: "change" }>, "ev">

const Stat = z.object({ entry: Entry })
const Written = z.object({ bytes: z.int() })
const Done = z.object({})

/** Files of a sandbox, touched by init inside it, with the rights of its user: no path leads outside. */
export class Files {
  readonly #sandbox: Sandbox

  constructor(sandbox: Sandbox) {
    this.#sandbox = sandbox
  }

  async *read(
    path: string,
    options: Asked<"file.read"> = {},
    signal?: AbortSignal,
  ): AsyncGenerator<Buffer, void, void> {
    await using operation = await this.#open({ op: "file.read", path, ...options }, signal)
    await operation.event("ok")
    for (;;) {
      const item = await operation.next()
      if (item instanceof Chunk) yield item.bytes
      else if (item.ev === "end") return
      else throw new Fault("internal", `init answered ${item.ev} to file.read`)
    }
  }

  /** Nothing of it is seen until all of it is written. */
  async write(
    path: string,
    content: Uint8Array | AsyncIterable<Uint8Array>,
    options: Asked<"file.write"> = {},
    signal?: AbortSignal,
  ): Promise<number> {
    await using operation = await this.#open({ op: "file.write", path, ...options }, signal)
    await operation.event("ready")
    const pieces = content instanceof Uint8Array ? [content] : content
    for await (const piece of pieces) await operation.write(piece)
    operation.control({ op: "eof" })
    return Written.parse(await operation.event("ok")).bytes
  }

  async list(path: string, options: Asked<"file.list"> = {}): Promise<{ entries: FileEntry[]; truncated: boolean }> {
    await using operation = await this.#open({ op: "file.list", path, ...options })
    const entries: FileEntry[] = []
    for (;;) {
      const event = await operation.event("entries", "end")
      if (event.ev === "end") return { entries, truncated: event.truncated ?? false }
      entries.push(...event.entries)
    }
  }

  async stat(path: string, options: Asked<"file.stat"> = {}): Promise<FileEntry> {
    return (await ask(this.#sandbox, { op: "file.stat", path, ...options }, Stat)).entry
  }

  async mark(path: string, options: Asked<"file.mark">): Promise<void> {
    await ask(this.#sandbox, { op: "file.mark", path, ...options }, Done)
  }

  async makeFolder(path: string, options: Asked<"file.mkdir"> = {}): Promise<void> {
    await ask(this.#sandbox, { op: "file.mkdir", path, ...options }, Done)
  }

  async move(from: string, to: string, options: { overwrite?: boolean; user?: string } = {}): Promise<void> {
    await ask(this.#sandbox, { op: "file.move", from, to, ...options }, Done)
  }

  async remove(path: string, options: Asked<"file.remove"> = {}): Promise<void> {
    await ask(this.#sandbox, { op: "file.remove", path, ...options }, Done)
  }

  /** Resolves when the watch is set; the changes follow. `resync` is thrown when some were lost. */
  async watch(
    path: string,
    options: Asked<"file.watch"> = {},
    signal?: AbortSignal,
  ): Promise<AsyncIterable<FileChange>> {
    const operation = await this.#open({ op: "file.watch", path, ...options }, signal)
    await operation.event("ok")
    return changes(operation)
  }

  async #open(request: z.input<typeof InitRequest>, signal?: AbortSignal): Promise<Operation> {
    return new Operation(await this.#sandbox.connect(signal), request, signal)
  }
}

async function* changes(operation: Operation): AsyncGenerator<FileChange, void, void> {
  await using _ = operation
  for (;;) {
    const event = await operation.event("change", "resync")
    if (event.ev === "resync") throw new Fault("resync", "some changes were lost", { hint: "list the folder again" })
    const { ev: __, ...change } = event
    yield change
  }
}

/** A whole small file. */
export async function readAll(pieces: AsyncIterable<Buffer>, bytesMax: number): Promise<Buffer> {
  const kept: Buffer[] = []
  let bytes = 0
  for await (const piece of pieces) {
    bytes += piece.length
    if (bytes > bytesMax) throw new Fault("limit", `the file is larger than ${bytesMax} bytes`)
    kept.push(Buffer.from(piece))
  }
  return Buffer.concat(kept)
}
