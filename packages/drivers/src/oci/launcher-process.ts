import { spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { Fault, type FaultCode } from "@warren/base/fault.ts"
import { decodeJson, encodeJson, FrameDecoder } from "@warren/base/frame.ts"
import type { Log } from "@warren/base/log.ts"
import { z } from "zod"

const Failure = z.object({
  step: z.string(),
  errno: z.string().nullish(),
  message: z.string(),
  stderr: z.string().optional(),
})
const Answer = z.object({ id: z.int().nullable(), ok: z.unknown().optional(), fault: Failure.optional() })
const Listening = z.object({ event: z.literal("listening"), id: z.int() })

/** Of its last words. */
const saidBytesMax = 1_000
/** How long it may take to end by itself. */
const endMs = 5_000

interface Waiting {
  resolve(value: unknown): void
  reject(fault: Fault): void
  listening(): void
}

/** One process of the launcher: requests go in, answers come out, and when it dies whoever waits is told. */
export class LauncherProcess implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #decoder = new FrameDecoder()
  readonly #waiting = new Map<number, Waiting>()
  #lastId = 0
  #ended: Fault | undefined

  constructor(program: string, args: readonly string[], log: Log) {
    this.#child = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"] })
    this.#child.stdout?.on("data", (chunk: Buffer) => this.#receive(chunk))
    let said = ""
    this.#child.stderr?.on("data", (chunk: Buffer) => {
      said = (said + chunk.toString()).slice(-saidBytesMax)
      log("warn", "launch.stderr", { text: chunk.toString() })
    })
    // A write after it died fails here; its end is told by `close`.
    this.#child.stdin?.on("error", () => undefined)
    this.#child.once("error", (cause) => {
      this.#end(new Fault("unavailable", `cannot run ${program}`, { cause, hint: "build it with: npm run build" }))
    })
    // Not before all it said has been read.
    this.#child.once("close", (code, signal) => {
      const why = said === "" ? "" : `: ${said.trim()}`
      this.#end(
        new Fault("unavailable", `the launcher ended (${signal ?? code})${why}`, { hint: "see: npm run doctor" }),
      )
    })
  }

  get hasEnded(): boolean {
    const { exitCode, signalCode } = this.#child
    return this.#ended !== undefined || exitCode !== null || signalCode !== null
  }

  ask(request: object, listening: () => void): Promise<unknown> {
    if (this.#ended) return Promise.reject(this.#ended)
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject, listening })
      this.#child.stdin?.write(encodeJson({ id, ...request }))
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null || this.#child.pid === undefined) return
    const gone = once(this.#child, "exit")
    this.#child.stdin?.end()
    const force = setTimeout(() => this.#child.kill("SIGKILL"), endMs)
    await gone
    clearTimeout(force)
  }

  #receive(chunk: Buffer): void {
    try {
      this.#decoder.push(chunk, (body) => this.#answer(decodeJson(body)))
    } catch (cause) {
      this.#child.kill("SIGKILL")
      this.#end(new Fault("internal", "the launcher does not make sense", { cause }))
    }
  }

  #answer(message: unknown): void {
    const event = Listening.safeParse(message)
    if (event.success) return this.#waiting.get(event.data.id)?.listening()
    const { id, ok, fault } = Answer.parse(message)
    const waiting = this.#waiting.get(id ?? 0)
    this.#waiting.delete(id ?? 0)
    if (fault) waiting?.reject(faultOf(fault))
    else waiting?.resolve(ok)
  }

  #end(fault: Fault): void {
    this.#ended ??= fault
    for (const waiting of this.#waiting.values()) waiting.reject(fault)
    this.#waiting.clear()
  }
}

/** What a person can do about each step that can fail. */
const hints: Readonly<Record<string, string>> = {
  runtime: "the OCI runtime said this; warren doctor checks what it needs",
  exec: "install it: apt-get install crun",
  cgroup: "limits need a writable cgroup: run as root, or have one delegated to this user",
}

const codes: Readonly<Record<string, FaultCode>> = {
  ENOENT: "not_found",
  EINVAL: "invalid",
  ENOTDIR: "invalid",
  ELOOP: "invalid",
  ENAMETOOLONG: "invalid",
  EEXIST: "conflict",
  ENOTSUP: "unsupported",
  EOPNOTSUPP: "unsupported",
  ENOSPC: "limit",
  EDQUOT: "limit",
  EAGAIN: "limit",
}

function faultOf(failure: z.output<typeof Failure>): Fault {
  const code = codes[failure.errno ?? ""] ?? "unavailable"
  const said = failure.stderr ? `: ${failure.stderr.trim().split("\n").at(-1)}` : ""
  const errno = failure.errno ? ` (${failure.errno})` : ""
  return new Fault(code, `the launcher failed at step ${failure.step}: ${failure.message}${errno}${said}`, {
    hint: hints[failure.step],
  })
}
