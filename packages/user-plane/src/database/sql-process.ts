import { spawn, type ChildProcess } from "node:child_process"
import { existsSync } from "node:fs"
import { Fault } from "@warren/base/fault.ts"
import type { Reply, Request } from "./request.ts"

/** In units of `ulimit`: KiB, and seconds of a process's whole life. */
const dataKilobytesMax = 512 * 1024
const cpuSecondsMax = 120
const heapMegabytes = 64
const saidCharsMax = 500
const setpriv = "/usr/bin/setpriv"

/** One process that runs somebody's SQL. */
export class SqlProcess implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #ended: Promise<string>
  #said = ""
  #isSpent = false
  /** How it ended. */
  #end: string | undefined
  /** Of whoever waits for an answer. Not a race with `#ended`, which would hold every answer until the process ends. */
  #hear: (heard: Reply | string) => void = () => undefined

  constructor(program: string, database: string) {
    const limits = `ulimit -d ${dataKilobytesMax}; ulimit -t ${cpuSecondsMax}; ulimit -c 0; exec "$@"`
    const node = [process.execPath, `--max-old-space-size=${heapMegabytes}`, program, database]
    const argv = ["/bin/sh", "-c", limits, "sh", ...node]
    // It may be busy and deaf when this process is killed: then the kernel ends it.
    const [command = "", ...args] = existsSync(setpriv) ? [setpriv, "--pdeathsig", "KILL", "--", ...argv] : argv
    this.#child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe", "ipc"], env: {}, cwd: "/" })
    this.#child.stdin?.on("error", () => undefined)
    this.#child.stdout?.resume()
    this.#child.stderr?.on(
      "data",
      (chunk: Buffer) => (this.#said = (this.#said + chunk.toString()).slice(-saidCharsMax)),
    )
    this.#ended = new Promise((resolve) => {
      this.#child.once("error", (failure) => resolve(failure.message))
      this.#child.once("close", (code, signal) => resolve(String(signal ?? code)))
    })
    this.#child.on("message", (reply) => this.#hear(reply as Reply))
    void this.#ended.then((how) => {
      this.#isSpent = true
      this.#end = how
      this.#hear(how)
    })
  }

  /** Not to be asked again. */
  get isSpent(): boolean {
    return this.#isSpent
  }

  /** Aborted, it rejects with the signal's reason once the process is gone, and with it whatever it was doing. */
  async ask(request: Request, signal: AbortSignal): Promise<Reply> {
    if (this.#end !== undefined) throw this.#died(this.#end, signal)
    const answered = new Promise<Reply | string>((resolve) => (this.#hear = resolve))
    this.#child.send(request, () => undefined)
    const abort = (): void => void this.#child.kill("SIGKILL")
    signal.addEventListener("abort", abort, { once: true })
    if (signal.aborted) abort()
    try {
      const answer = await answered
      if (typeof answer === "string") throw this.#died(answer, signal)
      if (answer.isSpent) this.#isSpent = true
      return answer
    } finally {
      signal.removeEventListener("abort", abort)
      this.#hear = () => undefined
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isSpent = true
    this.#child.kill("SIGKILL")
    await this.#ended
  }

  #died(how: string, signal: AbortSignal): unknown {
    if (signal.aborted) return signal.reason
    return new Fault("limit", `the statement took more than there is: its process ended (${how})`, {
      hint: "ask for less at once",
      subject: "database:user",
      cause: this.#said,
    })
  }
}
