import { spawn, type ChildProcessByStdio } from "node:child_process"
import { symlink } from "node:fs/promises"
import { basename, join } from "node:path"
import { createInterface, type Interface } from "node:readline"
import type { Readable, Writable } from "node:stream"
import { fileURLToPath } from "node:url"
import { rolldown } from "rolldown"
import type { TempFolder } from "./temp-folder.ts"

const repository = fileURLToPath(new URL("../../../../", import.meta.url))

/** Bundles a test's program once, so that each run of it starts in the time Node itself needs. */
export async function bundleProgram(source: URL, folder: TempFolder): Promise<string> {
  const file = folder.at(`${basename(source.pathname, ".ts")}.mjs`)
  const build = await rolldown({
    input: fileURLToPath(source),
    platform: "node",
    external: ["libsql"],
    transform: { target: "node20" },
  })
  await build.write({ file, format: "esm", codeSplitting: false })
  await build.close()
  await symlink(join(repository, "node_modules"), folder.at("node_modules")).catch((failure: NodeJS.ErrnoException) => {
    if (failure.code !== "EEXIST") throw failure
  })
  return file
}

interface Ending {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** Another process, talked to in lines. Killed when its owner ends. */
export class Program implements AsyncDisposable {
  readonly ended: Promise<Ending>
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>
  readonly #reader: Interface
  readonly #lines: AsyncIterator<string>
  #stderr = ""

  constructor(file: string, args: readonly string[]) {
    this.#child = spawn(process.execPath, [file, ...args], { stdio: ["pipe", "pipe", "pipe"] })
    this.#child.stdin.on("error", () => undefined)
    this.#child.stderr.on("data", (chunk: Buffer) => (this.#stderr += chunk.toString()))
    this.ended = new Promise((resolve) => this.#child.once("close", (code, signal) => resolve({ code, signal })))
    this.#reader = createInterface({ input: this.#child.stdout })
    this.#lines = this.#reader[Symbol.asyncIterator]()
  }

  /** What it said on stderr so far. */
  get complaints(): string {
    return this.#stderr
  }

  /** Its next line; throws when it ends without one. */
  async line(): Promise<string> {
    const next = await this.#lines.next()
    if (!next.done) return next.value
    const { code, signal } = await this.ended
    throw new Error(`the program ended (${signal ?? code}) without another line: ${this.#stderr}`)
  }

  /** Every line until it ends. */
  async rest(): Promise<string[]> {
    const lines: string[] = []
    for (let next = await this.#lines.next(); !next.done; next = await this.#lines.next()) lines.push(next.value)
    return lines
  }

  say(line: string): void {
    this.#child.stdin.write(`${line}\n`)
  }

  kill(): void {
    this.#child.kill("SIGKILL")
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill()
    await this.ended
  }
}
