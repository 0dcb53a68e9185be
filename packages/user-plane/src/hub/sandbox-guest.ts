import { readFile } from "node:fs/promises"
import type { Duplex } from "node:stream"
import { streamTags } from "@warren/base/frame.ts"
import { failpoint } from "@warren/base/failpoint.ts"
import { Fault, messageOf } from "@warren/base/fault.ts"
import type { Sandbox } from "@warren/drivers/driver.ts"
import { ask } from "@warren/drivers/init/ask.ts"
import { Files } from "@warren/drivers/init/files.ts"
import { OomWatch } from "@warren/drivers/init/oom.ts"
import { Operation } from "@warren/drivers/init/operation.ts"
import { connectPort } from "@warren/drivers/init/port.ts"
import { bootstrapFrame, type Bootstrap } from "@warren/protocol/bootstrap.ts"
import { Chunk } from "@warren/protocol/conversation.ts"
import { InitProcess } from "@warren/protocol/init.ts"
import type { TurnCause } from "@warren/protocol/hub/words.ts"
import { z } from "zod"
import { supervisorPath } from "../sessions/inside.ts"
import type { Guest } from "./guest.ts"

/** Where it waits for the hub to come: nothing in a sandbox can reach the runner, on any driver and with any network. */
export const hubSocketPath = "/tmp/.warren/hub.sock"
const Processes = z.object({ processes: z.array(InitProcess) })
const complaintCharsMax = 2_048

/** A supervisor in the sandbox of its session. */
export class SandboxGuest implements Guest {
  readonly ended: Promise<TurnCause>
  readonly #sandbox: Sandbox
  readonly #pid: number
  readonly #operation: Operation
  readonly #ready: Promise<void>
  #isReady: () => void = () => undefined
  #hasLeft = false
  #complaint = ""

  private constructor(sandbox: Sandbox, pid: number, operation: Operation, isNew: boolean) {
    this.#sandbox = sandbox
    this.#pid = pid
    this.#operation = operation
    this.#ready = isNew ? new Promise((resolve) => (this.#isReady = resolve)) : Promise.resolve()
    this.ended = this.#follow(new OomWatch(sandbox))
  }

  static async find(sandbox: Sandbox, signal: AbortSignal): Promise<SandboxGuest | undefined> {
    const { processes } = await ask(sandbox, { op: "ps" }, Processes, signal)
    const found = processes.find(({ argv, running }) => running && argv[1] === supervisorPath)
    if (!found) return undefined
    const operation = await attach(sandbox, found.pid, Number.MAX_SAFE_INTEGER)
    return new SandboxGuest(sandbox, found.pid, operation, false)
  }

  static async launch(sandbox: Sandbox, how: LaunchOptions, signal: AbortSignal): Promise<SandboxGuest> {
    await new Files(sandbox).write(supervisorPath, await readFile(how.program), { parents: true, mode: 0o600 }, signal)
    const argv = ["node", supervisorPath, "--bootstrap-stdin"]
    const env = { ...how.env, [mark]: "1" }
    const request = { op: "spawn" as const, argv, env, cwd: how.cwd, stdin: true, detached: true }
    await using spawn = new Operation(await sandbox.connect(signal), request, signal)
    const { pid } = await spawn.event("started").catch((failure: unknown) => {
      if (Fault.from(failure).code !== "not_found") throw failure
      throw new Fault("unsupported", "agents need node in the image", {
        cause: failure,
        hint: "use an image with Node.js, such as host",
      })
    })
    try {
      failpoint("agent/spawned")
      const operation = await attach(sandbox, pid, 0)
      const guest = new SandboxGuest(sandbox, pid, operation, true)
      await operation.write(bootstrapFrame(how.bootstrap))
      signal.throwIfAborted()
      return guest
    } catch (failure) {
      // Nobody would ever come to it.
      await ask(sandbox, { op: "kill", pid, name: "SIGKILL" }, z.object({})).catch(() => undefined)
      throw failure
    }
  }

  get complaint(): string {
    return this.#complaint.trim()
  }

  async connect(signal: AbortSignal): Promise<Duplex> {
    await Promise.race([this.#ready, this.ended])
    return connectPort(this.#sandbox, { path: hubSocketPath }, signal)
  }

  async kill(): Promise<void> {
    await ask(this.#sandbox, { op: "kill", pid: this.#pid, name: "SIGKILL" }, z.object({})).catch(() => undefined)
    await this.ended
  }

  async leave(): Promise<void> {
    this.#hasLeft = true
    await this.#operation[Symbol.asyncDispose]()
  }

  async #follow(oom: OomWatch): Promise<TurnCause> {
    try {
      for (;;) {
        const item = await this.#operation.next()
        if (item instanceof Chunk) this.#hear(item)
        else if (item.ev === "exit") {
          await sweep(this.#sandbox)
          return oom.reason(item) === "oom" ? "oom" : "orphaned"
        }
      }
    } catch (failure) {
      // Whoever has left hears of no end; otherwise the sandbox has gone, and it with it.
      if (this.#hasLeft) return new Promise<never>(() => undefined)
      this.#complaint ||= messageOf(failure)
      return "orphaned"
    }
  }

  #hear({ tag, bytes }: Chunk): void {
    // The first thing it prints is that it is ready.
    if (tag === streamTags.stdout) this.#isReady()
    else this.#complaint = (this.#complaint + bytes.toString()).slice(-complaintCharsMax)
  }
}

export interface LaunchOptions {
  /** The file that is the supervisor: copied in, because a sandbox sees nothing of Warren's own. */
  readonly program: string
  readonly env: Record<string, string>
  readonly cwd: string
  readonly bootstrap: Bootstrap
}

/** In the environment of a supervisor, and so of everything it starts. */
const mark = "WARREN_AGENT"
const sweepMs = 10_000
const sweepScript = `for p in /proc/[0-9]*; do grep -qz '^${mark}=' "$p/environ" 2>&- && kill -9 "\${p#/proc/}"; done 2>&-; true`

/** What a supervisor left behind goes: nobody would hear what an agent without one does, and the next one would have to share with it. */
async function sweep(sandbox: Sandbox): Promise<void> {
  try {
    const signal = AbortSignal.timeout(sweepMs)
    const request = { op: "spawn" as const, argv: ["sh", "-c", sweepScript], timeoutMs: sweepMs }
    await using operation = new Operation(await sandbox.connect(signal), request, signal)
    await operation.event("started")
    await operation.event("exit")
  } catch {
    // The sandbox is gone, and with it everything in it.
  }
}

async function attach(sandbox: Sandbox, pid: number, after: number): Promise<Operation> {
  const operation = new Operation(await sandbox.connect(), { op: "attach", pid, after })
  await operation.event("attached")
  return operation
}
