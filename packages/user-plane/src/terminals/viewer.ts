import { Fault } from "@warren/base/fault.ts"
import type { Down, Up } from "@warren/protocol/contract.ts"
import { Chunk, type Conversation } from "@warren/protocol/conversation.ts"
import type { terminalCalls } from "@warren/protocol/user-plane/terminals.ts"
import type { Run } from "../processes/run.ts"
import type { Audience, Size } from "./audience.ts"

type Told = Down<typeof terminalCalls, "terminal.attach">
type Said = Up<typeof terminalCalls, "terminal.attach">

const rung = Symbol("rung")

/** Somebody who looks at a terminal: what it says, and what the others do to its size. */
export class Viewer implements Conversation<Said, Told> {
  readonly #run: Run
  readonly #audience: Audience
  #pending: ReturnType<Run["next"]> | undefined
  /** The newest only: sizes before it are nobody's any more. */
  #size: Size | undefined
  #ring: () => void = () => undefined

  constructor(run: Run, audience: Audience) {
    this.#run = run
    this.#audience = audience
    audience.enter(this)
  }

  /** Another viewer said another size. */
  resized(size: Size): void {
    this.#size = size
    this.#ring()
  }

  async next(): Promise<Told | Chunk | undefined> {
    for (;;) {
      const size = this.#size
      this.#size = undefined
      if (size) return { ev: "resized", ...size }
      this.#pending ??= this.#ask()
      const bell = new Promise<typeof rung>((resolve) => (this.#ring = () => resolve(rung)))
      const item = await Promise.race([this.#pending, bell])
      if (item === rung) continue
      this.#pending = undefined
      return item instanceof Chunk || item === undefined ? item : this.#translated(item)
    }
  }

  send(said: Said): void {
    if (said.op === "resize") this.#audience.resize(said, this)
    this.#run.send(said)
  }

  write(bytes: Uint8Array): Promise<void> {
    return this.#run.write(bytes)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#audience.leave(this)
    await this.#run[Symbol.asyncDispose]()
  }

  #ask(): ReturnType<Run["next"]> {
    const next = this.#run.next()
    // It may fail while what somebody else did is told; whoever asks next hears of it.
    next.catch(() => undefined)
    return next
  }

  #translated(item: Exclude<Awaited<ReturnType<Run["next"]>>, Chunk | undefined>): Told {
    switch (item.ev) {
      case "attached": {
        const { size, viewers } = this.#audience
        return { ev: "attached", from: item.from, dropped: item.dropped, viewers, ...(size && { size }) }
      }
      case "resync":
      case "exit":
        return item
      case "started":
        throw new Fault("internal", "a terminal was started where one was looked at")
    }
  }
}
