import type { Exit, Spawn } from "@warren/protocol/init.ts"
import { streamTags, type StreamTag } from "@warren/base/frame.ts"
import type { z } from "zod"
import type { Sandbox } from "../driver.ts"
import { OomWatch, type EndReason } from "./oom.ts"
import { Chunk } from "@warren/protocol/conversation.ts"
import { Operation, type Control } from "./operation.ts"

export type SpawnOptions = Omit<z.input<typeof Spawn>, "op">

export type Ended = Omit<z.output<typeof Exit>, "ev" | "reason"> & { readonly reason: EndReason }

export interface Output {
  readonly stream: "stdout" | "stderr" | "pty"
  readonly bytes: Buffer
}

const streams: Readonly<Partial<Record<StreamTag, Output["stream"]>>> = {
  [streamTags.stdout]: "stdout",
  [streamTags.stderr]: "stderr",
  [streamTags.raw]: "pty",
}

/** A process in a sandbox, for as long as this end is kept open. Disposing it kills the process group. */
export class Execution implements AsyncDisposable {
  readonly pid: number
  readonly #operation: Operation
  readonly #oom: OomWatch
  #ended: Ended | undefined

  private constructor(operation: Operation, pid: number, oom: OomWatch) {
    this.#operation = operation
    this.pid = pid
    this.#oom = oom
  }

  static async start(sandbox: Sandbox, options: SpawnOptions, caller?: AbortSignal): Promise<Execution> {
    const signal = withDeadline(caller, options)
    const oom = new OomWatch(sandbox)
    const operation = new Operation(await sandbox.connect(signal), { op: "spawn", ...options }, signal)
    try {
      const { pid } = await operation.event("started")
      return new Execution(operation, pid, oom)
    } catch (failure) {
      await operation[Symbol.asyncDispose]()
      throw failure
    }
  }

  write(bytes: Uint8Array): Promise<void> {
    return this.#operation.write(bytes)
  }

  control(message: Control): void {
    this.#operation.control(message)
  }

  /** Output as it comes; a piece is good until the next is asked for. Reading slowly holds the process back. Ends when the process has ended. */
  async *output(): AsyncGenerator<Output, void, void> {
    while (!this.#ended) {
      const item = await this.#operation.next()
      if (item instanceof Chunk) yield { stream: streams[item.tag] ?? "pty", bytes: item.bytes }
      else if (item.ev === "exit") this.#ended = this.#explain(item)
    }
  }

  /** How it ended. Output that nobody read is thrown away. */
  async ended(): Promise<Ended> {
    for await (const _ of this.output());
    return this.#ended as Ended
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#operation[Symbol.asyncDispose]()
  }

  #explain({ ev: _, ...exit }: z.output<typeof Exit>): Ended {
    return { ...exit, reason: this.#oom.reason(exit) }
  }
}

/** What init may need beyond a command's own time to end it and say so. */
const lateMs = 5_000

/** init ends a command in time; the host does not rely on it, because a sandbox out of memory may not get round to it. */
function withDeadline(caller: AbortSignal | undefined, options: SpawnOptions): AbortSignal | undefined {
  if (!options.timeoutMs || options.detached) return caller
  const late = AbortSignal.timeout(options.timeoutMs + (options.graceMs ?? 0) + lateMs)
  return caller ? AbortSignal.any([caller, late]) : late
}

export interface ExecResult extends Ended {
  readonly stdout: Buffer
  readonly stderr: Buffer
}

const outputBytesDefault = 16 * 1024 * 1024

/** Runs a command to its end and keeps its output, up to `outputBytesMax` (16 MiB unless said otherwise). */
export async function exec(sandbox: Sandbox, options: SpawnOptions, signal?: AbortSignal): Promise<ExecResult> {
  await using execution = await Execution.start(sandbox, { outputBytesMax: outputBytesDefault, ...options }, signal)
  const stdout: Buffer[] = []
  const stderr: Buffer[] = []
  for await (const { stream, bytes } of execution.output())
    (stream === "stderr" ? stderr : stdout).push(Buffer.from(bytes))
  const ended = await execution.ended()
  return { ...ended, stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr) }
}
