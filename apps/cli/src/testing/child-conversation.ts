import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process"
import { once } from "node:events"
import { drained } from "@warren/base/drained.ts"
import { Fault } from "@warren/base/fault.ts"
import { streamTags, type StreamTag } from "@warren/base/frame.ts"
import type { Down, Received, Up } from "@warren/protocol/contract.ts"
import { Chunk, type Conversation } from "@warren/protocol/conversation.ts"
import type { userPlane } from "@warren/protocol/user-plane.ts"

type Told = Down<typeof userPlane, "process.exec">
type Said = Up<typeof userPlane, "process.exec">

const keptItemsMax = 16

/** A program of this machine behind the wire's `process.exec`, in a process group of its own. */
export class ChildConversation implements Conversation<Said, Told> {
  readonly child: ChildProcessWithoutNullStreams
  readonly #items: (Told | Chunk)[] = []
  readonly #startedMs = performance.now()
  #wake: (() => void) | undefined
  #isOver = false

  private constructor(child: ChildProcessWithoutNullStreams) {
    this.child = child
    child.stdin.on("error", () => undefined)
    this.#hear(streamTags.stdout, child.stdout)
    this.#hear(streamTags.stderr, child.stderr)
    child.once("close", (exitCode, signal) => {
      const reason = signal === null ? ("exit" as const) : ("signal" as const)
      const durationMs = performance.now() - this.#startedMs
      this.#push({ ev: "exit", exitCode, signal, reason, durationMs, truncated: false })
    })
    this.#push({ ev: "started", pid: child.pid ?? 0 })
  }

  static async start(input: Received<typeof userPlane, "process.exec">): Promise<ChildConversation> {
    const [program = "sh", ...args] = input.argv ?? ["sh", "-c", input.cmd ?? ""]
    const env = { PATH: process.env["PATH"], ...input.env }
    const child = spawn(program, args, { detached: true, env, stdio: "pipe" })
    try {
      await once(child, "spawn")
    } catch (cause) {
      throw new Fault("not_found", `there is no program "${program}"`, { cause })
    }
    if (!input.stdin) child.stdin.end()
    return new ChildConversation(child)
  }

  async next(): Promise<Told | Chunk | undefined> {
    for (;;) {
      const item = this.#items.shift()
      if (this.#items.length < keptItemsMax) this.child.stdout.resume()
      if (item || this.#isOver) return item
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  send(message: Said): void {
    if (message.op === "eof") this.child.stdin.end()
    if (message.op === "signal") this.kill(message.name as NodeJS.Signals)
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (!this.child.stdin.write(bytes) && this.child.stdin.writable) {
      // A program that ends without having read is nothing the writer could do anything about.
      await drained(this.child.stdin)
    }
  }

  kill(signal: NodeJS.Signals): void {
    if (this.child.exitCode === null && this.child.signalCode === null) process.kill(-(this.child.pid ?? 0), signal)
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.kill("SIGKILL")
    this.#isOver = true
    this.#wake?.()
    return Promise.resolve()
  }

  #hear(tag: StreamTag, stream: NodeJS.ReadableStream): void {
    stream.on("data", (bytes: Buffer) => {
      this.#push(new Chunk(tag, bytes))
      if (this.#items.length >= keptItemsMax) this.child.stdout.pause()
    })
  }

  #push(item: Told | Chunk): void {
    this.#items.push(item)
    if (!(item instanceof Chunk) && item.ev === "exit") this.#isOver = true
    this.#wake?.()
  }
}
