import { spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { bundleProgram } from "@warren/base/testing/program.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"

interface Outcome {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** The CLI as people run it: a process of its own, built once. */
export class CliProgram implements AsyncDisposable {
  readonly #file: string
  readonly #env: Readonly<Record<string, string>>
  readonly #folder: TempFolder | undefined

  private constructor(file: string, env: Readonly<Record<string, string>>, folder?: TempFolder) {
    this.#file = file
    this.#env = env
    this.#folder = folder
  }

  static async build(): Promise<CliProgram> {
    const folder = await TempFolder.make()
    return new CliProgram(await bundleProgram(new URL("../main.ts", import.meta.url), folder), {}, folder)
  }

  /** One that is built already. */
  static at(file: string): CliProgram {
    return new CliProgram(file, {})
  }

  /** The same program in another environment. */
  with(env: Readonly<Record<string, string>>): CliProgram {
    return new CliProgram(this.#file, { ...this.#env, ...env }, this.#folder)
  }

  start(...args: string[]): Running {
    return this.#launch(process.execPath, [this.#file, ...args])
  }

  /** On a terminal of its own, made by `script`, where `before` was run; what it shows and what is typed go through the pipes. */
  startOnTerminal(args: readonly string[], before = "true"): Running {
    const line = [process.execPath, this.#file, ...args].map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ")
    return this.#launch("script", ["-qefc", `stty rows 30 cols 100; ${before}; ${line}`, "/dev/null"])
  }

  /** Runs to the end with this input. */
  async run(args: readonly string[], input: string | Buffer = ""): Promise<Outcome> {
    await using running = this.start(...args)
    running.child.stdin?.end(input)
    return await running.ended
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#folder?.[Symbol.asyncDispose]()
  }

  #launch(program: string, args: readonly string[]): Running {
    const { PATH = "", HOME = "/" } = process.env
    return new Running(spawn(program, args, { env: { PATH, HOME, TERM: "xterm", ...this.#env }, stdio: "pipe" }))
  }
}

/** A CLI that runs. */
export class Running implements AsyncDisposable {
  readonly child: ChildProcess
  readonly ended: Promise<Outcome>
  readonly #stdout: Buffer[] = []
  readonly #stderr: Buffer[] = []

  constructor(child: ChildProcess) {
    this.child = child
    child.stdin?.on("error", () => undefined)
    child.stdout?.on("data", (piece: Buffer) => this.#stdout.push(piece))
    child.stderr?.on("data", (piece: Buffer) => this.#stderr.push(piece))
    this.ended = new Promise((resolve) => {
      child.once("close", (code, signal) => resolve({ code, signal, stdout: this.stdout, stderr: this.stderr }))
    })
  }

  get stdout(): string {
    return Buffer.concat(this.#stdout).toString()
  }

  get stderr(): string {
    return Buffer.concat(this.#stderr).toString()
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#stdout)
  }

  /** Resolves when it has said this on stdout. */
  async until(text: string): Promise<void> {
    while (!this.stdout.includes(text)) {
      if (this.child.exitCode !== null) throw new Error(`it ended without saying ${text}: ${this.stdout}${this.stderr}`)
      await Promise.race([once(this.child.stdout ?? this.child, "data"), this.ended])
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill("SIGKILL")
    await this.ended
  }
}
