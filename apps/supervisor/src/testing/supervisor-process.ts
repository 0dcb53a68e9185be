import { spawn, type ChildProcessByStdio } from "node:child_process"
import { createInterface, type Interface } from "node:readline"
import type { Readable, Writable } from "node:stream"
import { StdioEvent } from "@warren/protocol/supervisor/lines.ts"

/** A supervisor with `--stdio`, talked to as its host does. */
export class SupervisorProcess implements AsyncDisposable {
  readonly ended: Promise<number | null>
  readonly pid: number
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>
  readonly #lines: AsyncIterator<string>
  readonly #reader: Interface
  #complaints = ""

  constructor(program: string, env: Readonly<Record<string, string>>) {
    this.#child = spawn(process.execPath, [program, "--stdio"], {
      env: { ...process.env, ...env },
      stdio: ["pipe", "pipe", "pipe"],
    })
    this.pid = this.#child.pid ?? 0
    this.#child.stdin.on("error", () => undefined)
    this.#child.stderr.on("data", (piece: Buffer) => (this.#complaints += piece.toString()))
    this.ended = new Promise((resolve) => this.#child.once("close", (code) => resolve(code)))
    this.#reader = createInterface({ input: this.#child.stdout })
    this.#lines = this.#reader[Symbol.asyncIterator]()
  }

  say(line: object | string): void {
    this.#child.stdin.write(`${typeof line === "string" ? line : JSON.stringify(line)}\n`)
  }

  hangUp(): void {
    this.#child.stdin.end()
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name)
  }

  async event(): Promise<StdioEvent> {
    const { value, done } = await this.#lines.next()
    if (done) throw new Error(`it ended: ${this.#complaints}`)
    return StdioEvent.parse(JSON.parse(value))
  }

  /** Everything up to the first event of that kind, and it. */
  async until(ev: StdioEvent["ev"]): Promise<StdioEvent[]> {
    const seen = [await this.event()]
    while (seen.at(-1)?.ev !== ev) seen.push(await this.event())
    return seen
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.signal("SIGKILL")
    await this.ended
  }
}
