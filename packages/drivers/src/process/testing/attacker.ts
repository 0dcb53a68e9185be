import { execFile } from "node:child_process"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import type { Sandbox } from "../../driver.ts"
import { exec } from "../../init/exec.ts"
import { Files } from "../../init/files.ts"

const run = promisify(execFile)
const inside = "attack"

/** The program in `attack.c`, which tries one forbidden thing at a time. */
export class Attacker implements AsyncDisposable {
  readonly #folder: string

  private constructor(folder: string) {
    this.#folder = folder
  }

  static async build(): Promise<Attacker> {
    const attacker = new Attacker(await mkdtemp(join(tmpdir(), "warren-attack-")))
    const source = join(import.meta.dirname, "attack.c")
    await run("cc", ["-static", "-O1", "-Wall", "-Wextra", "-Werror", "-o", attacker.#program, source])
    return attacker
  }

  async bring(sandbox: Sandbox): Promise<void> {
    await new Files(sandbox).write(`/workspace/${inside}`, await readFile(this.#program), { mode: 0o755 })
  }

  /** Here, without any confinement: what must be OPEN for a refusal inside to mean something. */
  async outside(...args: readonly string[]): Promise<string> {
    return (await run(this.#program, args)).stdout.trim()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true })
  }

  get #program(): string {
    return join(this.#folder, inside)
  }
}

export async function attack(sandbox: Sandbox, ...args: readonly string[]): Promise<string> {
  const result = await exec(sandbox, { argv: [`./${inside}`, ...args], cwd: "/workspace" })
  return result.stdout.toString().trim()
}
