import { Fault } from "@warren/base/fault.ts"
import { Operation, type Request } from "@warren/drivers/init/operation.ts"
import type { Down, Up } from "@warren/protocol/contract.ts"
import { Chunk, type Conversation } from "@warren/protocol/conversation.ts"
import type { fileCalls } from "@warren/protocol/user-plane/files.ts"
import type { Use } from "../sessions/use.ts"

type Asked<Op extends Request["op"]> = Omit<Extract<Request, { op: Op }>, "op" | "path">

async function opened(use: Use, request: Request, signal: AbortSignal, answer: "ok" | "ready"): Promise<Operation> {
  try {
    const operation = new Operation(await use.live.sandbox.connect(signal), request, signal)
    try {
      await operation.event(answer)
      return operation
    } catch (failure) {
      await operation[Symbol.asyncDispose]()
      throw failure
    }
  } catch (failure) {
    use[Symbol.dispose]()
    throw failure
  }
}

/** The bytes of a file on their way out. */
export class Download implements Conversation<never, never> {
  readonly #use: Use
  readonly #operation: Operation

  private constructor(use: Use, operation: Operation) {
    this.#use = use
    this.#operation = operation
  }

  /** Takes over the use. */
  static async open(use: Use, path: string, how: Asked<"file.read">, signal: AbortSignal): Promise<Download> {
    return new Download(use, await opened(use, { op: "file.read", path, ...how }, signal, "ok"))
  }

  async next(): Promise<Chunk | undefined> {
    const item = await this.#operation.next()
    if (item instanceof Chunk) return item
    if (item.ev === "end") return undefined
    throw new Fault("internal", `init answered ${item.ev} to file.read`)
  }

  send(): void {
    throw new Fault("unsupported", "a file that is read takes nothing")
  }

  write(): Promise<void> {
    return Promise.reject(new Fault("unsupported", "a file that is read takes nothing"))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#operation[Symbol.asyncDispose]()
    this.#use[Symbol.dispose]()
  }
}

/** The bytes of a file on their way in; it is there when `written` is said. */
export class Upload implements Conversation<Up<typeof fileCalls, "file.write">, Down<typeof fileCalls, "file.write">> {
  readonly #use: Use
  readonly #operation: Operation
  #isOver = false

  private constructor(use: Use, operation: Operation) {
    this.#use = use
    this.#operation = operation
  }

  /** Takes over the use. */
  static async open(use: Use, path: string, how: Asked<"file.write">, signal: AbortSignal): Promise<Upload> {
    return new Upload(use, await opened(use, { op: "file.write", path, ...how }, signal, "ready"))
  }

  async next(): Promise<Down<typeof fileCalls, "file.write"> | undefined> {
    if (this.#isOver) return undefined
    const { bytes } = await this.#operation.event("ok")
    this.#isOver = true
    return { ev: "written", bytes: Number(bytes) }
  }

  send(): void {
    this.#operation.control({ op: "eof" })
  }

  write(bytes: Uint8Array): Promise<void> {
    return this.#operation.write(bytes)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#operation[Symbol.asyncDispose]()
    this.#use[Symbol.dispose]()
  }
}
