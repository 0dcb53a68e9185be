import { execFile, spawn } from "node:child_process"
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises"
import os from "node:os"
import path from "node:path"
import { promisify } from "node:util"

const execute = promisify(execFile)

export interface Attempt {
  readonly label: string
  readonly number: number
  readonly args?: readonly number[]
  readonly entry?: 32 | 64
}

interface Outcome {
  readonly code: number
  readonly output: string
}

/** A small program that puts itself under a filter, in a directory of its own. */
export class Guard implements AsyncDisposable {
  readonly directory: string
  readonly #program: string
  readonly #filter: string

  private constructor(directory: string) {
    this.directory = directory
    this.#program = path.join(directory, "guard")
    this.#filter = path.join(directory, "filter")
  }

  static async build(filter: Buffer): Promise<Guard> {
    const guard = new Guard(await mkdtemp(path.join(os.tmpdir(), "warren-guard-")))
    // The attempts are made by another user, who has to read the filter.
    await chmod(guard.directory, 0o755)
    await execute("cc", [
      "-static",
      "-O1",
      "-Wall",
      "-Wextra",
      "-Werror",
      "-o",
      guard.#program,
      path.join(import.meta.dirname, "guard.c"),
    ])
    await writeFile(guard.#filter, filter)
    return guard
  }

  /** The errno of each call, 0 for success. */
  async try(attempts: readonly Attempt[], under: "filter" | "nothing"): Promise<readonly string[]> {
    const lines = attempts.map(({ entry = 64, number, args = [] }) => {
      const six = Array.from({ length: 6 }, (_, index) => hex(args[index] ?? 0))
      return [entry, hex(number), ...six].join(" ")
    })
    const { code, output } = await this.#call([under === "filter" ? this.#filter : "-", "try"], `${lines.join("\n")}\n`)
    if (code !== 0) throw new Error(`guard ended with ${code}: ${output}`)
    return output.trim().split("\n")
  }

  async run(...command: readonly string[]): Promise<Outcome> {
    return await this.#call([this.#filter, "run", ...command], "")
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.directory, { recursive: true, force: true })
  }

  async #call(args: readonly string[], input: string): Promise<Outcome> {
    const child = spawn(this.#program, args, {
      cwd: this.directory,
      stdio: "pipe",
      timeout: 50_000,
      killSignal: "SIGKILL",
    })
    let output = ""
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()))
    child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()))
    child.stdin.on("error", () => undefined)
    child.stdin.end(input)
    return await new Promise((resolve, reject) => {
      child.once("error", reject)
      child.once("close", (code) => resolve({ code: code ?? -1, output }))
    })
  }
}

/** -1 and its like as the 64 bits that the kernel sees. */
function hex(value: number): string {
  return BigInt.asUintN(64, BigInt(value)).toString(16)
}
