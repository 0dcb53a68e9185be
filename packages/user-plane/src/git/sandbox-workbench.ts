import { Execution } from "@warren/drivers/init/exec.ts"
import { Files, readAll } from "@warren/drivers/init/files.ts"
import type { EnvironmentOf } from "../processes/handlers.ts"
import type { Use } from "../sessions/use.ts"
import type { Ran, RunOptions, Workbench } from "./workbench.ts"

const home = "/home/user"
const outputBytesDefault = 1024 * 1024

/** Where a session's programs begin: its workspace, or its home. */
export function rootOf({ live }: Use): string {
  return live.plan.workspace === undefined ? home : "/workspace"
}

/** In the sandbox of a session that is in use for as long as this is. */
export class SandboxWorkbench implements Workbench {
  readonly home = home
  readonly root: string
  readonly hasWorkspace: boolean
  readonly #use: Use
  readonly #environmentOf: EnvironmentOf

  constructor(use: Use, environmentOf: EnvironmentOf) {
    this.#use = use
    this.#environmentOf = environmentOf
    this.root = rootOf(use)
    this.hasWorkspace = this.root !== home
  }

  async run(argv: readonly string[], options: RunOptions, signal: AbortSignal): Promise<Ran> {
    const { env = {}, cwd = home, timeoutMs, outputBytesMax = outputBytesDefault, heard } = options
    const request = { argv: [...argv], env: this.#environmentOf(this.#use, env), cwd, timeoutMs, outputBytesMax }
    await using execution = await Execution.start(this.#use.live.sandbox, request, signal)
    const kept: Record<"stdout" | "stderr" | "pty", Buffer[]> = { stdout: [], stderr: [], pty: [] }
    for await (const { stream, bytes } of execution.output()) {
      kept[stream].push(Buffer.from(bytes))
      if (stream === "stderr") heard?.(bytes.toString())
    }
    const { code, truncated } = await execution.ended()
    return { code, stdout: Buffer.concat(kept.stdout), stderr: Buffer.concat(kept.stderr), isCut: truncated }
  }

  async write(path: string, content: Uint8Array, signal: AbortSignal): Promise<void> {
    await new Files(this.#use.live.sandbox).write(path, content, { parents: true, mode: 0o600 }, signal)
  }

  async sizeOf(path: string): Promise<number> {
    return (await new Files(this.#use.live.sandbox).stat(path, { follow: true })).size
  }

  read(path: string, bytesMax: number, signal: AbortSignal): Promise<Buffer> {
    return readAll(new Files(this.#use.live.sandbox).read(path, {}, signal), bytesMax)
  }
}
