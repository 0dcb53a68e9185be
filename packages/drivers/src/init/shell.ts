import { Fault } from "@warren/base/fault.ts"
import type { InitRequest, ShellDone } from "@warren/protocol/init.ts"
import { z } from "zod"
import type { Sandbox } from "../driver.ts"
import { ask } from "./ask.ts"
import { OomWatch, type EndReason } from "./oom.ts"
import { Chunk } from "@warren/protocol/conversation.ts"
import { Operation } from "./operation.ts"

type OpenRequest = Extract<z.input<typeof InitRequest>, { op: "shell.open" }>
type Done = Omit<z.output<typeof ShellDone>, "ev" | "reason"> & { readonly reason: EndReason }

export interface RunResult extends Done {
  /** stdout and stderr, in the order they were written. */
  readonly output: Buffer
}

interface RunOptions {
  readonly timeoutMs?: number
  readonly outputBytesMax?: number
  readonly signal?: AbortSignal
}

const Opened = z.object({ shell: z.string(), pid: z.int(), path: z.string() })
/** Longer commands follow as bytes: a JSON frame has room for a megabyte at most. */
const inlineBytesMax = 64 * 1024
const outputBytesDefault = 16 * 1024 * 1024

/** A shell that lives between commands: cwd, variables, functions and background jobs survive. */
export class Shell {
  readonly name: string
  readonly path: string
  readonly #sandbox: Sandbox

  private constructor(sandbox: Sandbox, opened: z.output<typeof Opened>) {
    this.#sandbox = sandbox
    this.name = opened.shell
    this.path = opened.path
  }

  static async open(sandbox: Sandbox, options: Omit<OpenRequest, "op"> = {}): Promise<Shell> {
    return new Shell(sandbox, await ask(sandbox, { op: "shell.open", ...options }, Opened))
  }

  async run(command: string, options: RunOptions = {}): Promise<RunResult> {
    const { signal, ...limits } = options
    const isInline = Buffer.byteLength(command) <= inlineBytesMax
    const request = { op: "shell.run", shell: this.name, outputBytesMax: outputBytesDefault, ...limits } as const
    const oom = new OomWatch(this.#sandbox)
    await using operation = new Operation(
      await this.#sandbox.connect(signal),
      isInline ? { ...request, command } : request,
      signal,
    )
    if (!isInline) {
      await operation.write(Buffer.from(command))
      operation.control({ op: "eof" })
    }
    const output: Buffer[] = []
    for (;;) {
      const item = await operation.next()
      if (item instanceof Chunk) output.push(Buffer.from(item.bytes))
      else if (item.ev === "done") {
        const { ev: _, ...done } = item
        return { ...done, reason: oom.reason(done), output: Buffer.concat(output) }
      } else if (item.ev !== "warn") throw new Fault("internal", `init answered ${item.ev} to shell.run`)
    }
  }

  async close(): Promise<void> {
    await ask(this.#sandbox, { op: "shell.close", shell: this.name }, z.object({}))
  }
}
