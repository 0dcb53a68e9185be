import { Fault } from "@warren/base/fault.ts"
import { OomWatch } from "@warren/drivers/init/oom.ts"
import { Operation } from "@warren/drivers/init/operation.ts"
import type { Down } from "@warren/protocol/contract.ts"
import { Chunk, type Conversation } from "@warren/protocol/conversation.ts"
import type { processCalls } from "@warren/protocol/user-plane/processes.ts"
import type { Use } from "../sessions/use.ts"
import { endedOf } from "./ended.ts"

type Done = Down<typeof processCalls, "shell.run">

interface Asked {
  readonly shell: string
  readonly cmd: string
  readonly timeoutMs: number
  readonly outputBytesMax: number
}

/** A command in a shell that lives on. */
export class ShellRun implements Conversation<never, Done> {
  readonly #use: Use
  readonly #operation: Operation
  readonly #oom: OomWatch
  #isOver = false

  private constructor(use: Use, operation: Operation, oom: OomWatch) {
    this.#use = use
    this.#operation = operation
    this.#oom = oom
  }

  /** Takes over the use. */
  static async start(use: Use, asked: Asked, signal: AbortSignal): Promise<ShellRun> {
    try {
      const { sandbox } = use.live
      const oom = new OomWatch(sandbox)
      const { cmd, ...request } = asked
      const operation = new Operation(await sandbox.connect(signal), { op: "shell.run", ...request }, signal)
      // As bytes: a command may be longer than a message.
      await operation.write(Buffer.from(cmd))
      operation.control({ op: "eof" })
      return new ShellRun(use, operation, oom)
    } catch (failure) {
      use[Symbol.dispose]()
      throw failure
    }
  }

  async next(): Promise<Done | Chunk | undefined> {
    if (this.#isOver) return undefined
    for (;;) {
      const item = await this.#operation.next()
      if (item instanceof Chunk) return item
      if (item.ev === "done") {
        this.#isOver = true
        const { cwd, restarted } = item
        return { ev: "done", cwd, isNew: restarted, ...endedOf({ ...item, reason: this.#oom.reason(item) }) }
      }
      if (item.ev !== "warn") throw new Fault("internal", `init said ${item.ev} about a shell`)
    }
  }

  send(): void {
    throw new Fault("unsupported", "a command in a shell takes nothing")
  }

  write(): Promise<void> {
    return Promise.reject(new Fault("unsupported", "a command in a shell has no input"))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#operation[Symbol.asyncDispose]()
    this.#use[Symbol.dispose]()
  }
}
