import { spawn, type ChildProcessByStdio } from "node:child_process"
import { once } from "node:events"
import type { Readable, Writable } from "node:stream"
import { setTimeout as sleep } from "node:timers/promises"
import { errnoOf, Fault, messageOf } from "@warren/base/fault.ts"

export interface Launch {
  readonly cmd: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd?: string | undefined
  readonly uid?: number | undefined
  readonly gid?: number | undefined
}

export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** What a program that is asked to end may take. */
export const stopGraceMs = 5_000

/** A program with everything it starts: a group of its own, ended as a whole. */
export class ProcessGroup implements AsyncDisposable {
  readonly pid: number
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  /** Resolves when the program has ended; what it left behind in its group has been killed by then. */
  readonly exited: Promise<Exit>
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>

  private constructor(child: ChildProcessByStdio<Writable, Readable, Readable>, pid: number) {
    this.#child = child
    this.pid = pid
    this.stdin = child.stdin
    this.stdout = child.stdout
    this.stderr = child.stderr
    // A program that does not read is told by its end, not by a broken pipe here.
    child.stdin.on("error", () => undefined)
    this.exited = new Promise((resolve) => {
      child.once("exit", (code, signal) => {
        this.#signal("SIGKILL")
        for (const stream of [child.stdout, child.stderr]) endSoon(stream)
        resolve({ code, signal })
      })
    })
  }

  static async start({ cmd, args, env, cwd, uid, gid }: Launch): Promise<ProcessGroup> {
    const who = { ...(uid === undefined ? {} : { uid }), ...(gid === undefined ? {} : { gid }) }
    const where = cwd === undefined ? {} : { cwd }
    const child = spawn(cmd, [...args], {
      env: { ...env },
      ...where,
      ...who,
      detached: true,
      stdio: ["pipe", "pipe", "pipe"],
    })
    try {
      await once(child, "spawn")
    } catch (cause) {
      const code = errnoOf(cause) === "ENOENT" ? "not_found" : "unavailable"
      throw new Fault(code, `could not start ${cmd}: ${messageOf(cause)}`, { cause })
    }
    return new ProcessGroup(child, child.pid ?? 0)
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** Ask, wait, force: the whole group. */
  async stop(graceMs: number = stopGraceMs): Promise<Exit> {
    if (!this.isRunning) return this.exited
    this.#signal("SIGTERM")
    const patience = new AbortController()
    const late = sleep(graceMs, "late" as const, { signal: patience.signal }).catch(() => undefined)
    if ((await Promise.race([this.exited, late])) === "late") this.#signal("SIGKILL")
    patience.abort()
    return this.exited
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  #signal(name: NodeJS.Signals): void {
    try {
      process.kill(-this.pid, name)
    } catch {
      // Nobody of the group is left.
    }
  }
}

const lingerMs = 250

/** What left the group may hold the pipe open for ever: when all that was written has been read, nothing more is waited for. */
function endSoon(stream: Readable): void {
  const timer = setInterval(() => {
    if (stream.readableEnded || stream.destroyed) return clearInterval(timer)
    if (stream.readableLength > 0) return
    clearInterval(timer)
    stream.push(null)
  }, lingerMs)
  stream.once("close", () => clearInterval(timer))
}
