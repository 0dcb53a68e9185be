import { Fault } from "@warren/base/fault.ts"
import { OomWatch } from "@warren/drivers/init/oom.ts"
import { Operation, type Control, type Event, type Request } from "@warren/drivers/init/operation.ts"
import { Chunk, type Conversation } from "@warren/protocol/conversation.ts"
import type { Down, Up } from "@warren/protocol/contract.ts"
import type { processCalls } from "@warren/protocol/user-plane/processes.ts"
import type { Use } from "../sessions/use.ts"
import { endedOf } from "./ended.ts"

type RunEvent = Down<typeof processCalls, "process.exec">
type RunControl = Up<typeof processCalls, "process.exec">

/** A program somebody stays with: init's words in ours. Its session counts as used until it is over. */
export class Run implements Conversation<RunControl, RunEvent> {
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
  static async start(use: Use, request: Request, signal: AbortSignal): Promise<Run> {
    try {
      const { sandbox } = use.live
      const oom = new OomWatch(sandbox)
      return new Run(use, new Operation(await sandbox.connect(signal), request, signal), oom)
    } catch (failure) {
      use[Symbol.dispose]()
      throw failure
    }
  }

  async next(): Promise<RunEvent | Chunk | undefined> {
    if (this.#isOver) return undefined
    for (;;) {
      const item = await this.#operation.next()
      if (item instanceof Chunk) return item
      const event = this.#translated(item)
      if (event) return event
    }
  }

  send(control: RunControl): void {
    this.#operation.control(control satisfies Control)
  }

  write(bytes: Uint8Array): Promise<void> {
    return this.#operation.write(bytes)
  }

  /** Resolves when init has taken everything that was written. */
  finish(): Promise<void> {
    return this.#operation.finish()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#operation[Symbol.asyncDispose]()
    this.#use[Symbol.dispose]()
  }

  #translated(event: Event): RunEvent | undefined {
    switch (event.ev) {
      case "started":
        return { ev: "started", pid: event.pid }
      case "attached":
        return { ev: "attached", from: event.from, dropped: event.dropped, isRunning: event.running }
      case "resync":
        return { ev: "resync", dropped: event.dropped ?? 0 }
      case "exit":
        this.#isOver = true
        return { ev: "exit", ...endedOf({ ...event, reason: this.#oom.reason(event) }) }
      case "warn":
        return undefined
      case "ok":
      case "fault":
      case "ready":
      case "entries":
      case "end":
      case "change":
      case "done":
        throw new Fault("internal", `init said ${event.ev} about a program`)
    }
  }
}
